//! Credentials out of a kubeconfig or a talosconfig. Only what is written in the file itself counts: nothing that it names
//! is run or read.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use zeroize::Zeroizing;

use super::{
    CERTIFICATE, ClientCertificate, Fault, KEY, KubernetesAccess, Opens, Origin, Rejected, TalosAccess, pem,
};

/// A kubeconfig (client-go, `clientcmd/api/v1`), as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: Option<String>,
    #[serde(default)]
    contexts: Option<Vec<NamedContext>>,
    #[serde(default)]
    clusters: Option<Vec<NamedCluster>>,
    #[serde(default)]
    users: Option<Vec<NamedUser>>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: Option<String>,
    certificate_authority_data: Option<Zeroizing<String>>,
    certificate_authority: Option<IgnoredAny>,
    insecure_skip_tls_verify: Option<bool>,
    tls_server_name: Option<IgnoredAny>,
    proxy_url: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate_data: Option<Zeroizing<String>>,
    client_key_data: Option<Zeroizing<String>>,
    client_certificate: Option<IgnoredAny>,
    client_key: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
    token: Option<IgnoredAny>,
    #[serde(rename = "tokenFile")]
    token_file: Option<IgnoredAny>,
    username: Option<IgnoredAny>,
    password: Option<IgnoredAny>,
    #[serde(rename = "as")]
    impersonated: Option<IgnoredAny>,
}

/// A talosconfig (Talos, `client/config.Config`), as far as it is read.
#[derive(Deserialize)]
struct Talosconfig {
    context: Option<String>,
    #[serde(default)]
    contexts: Option<BTreeMap<String, TalosContext>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TalosContext {
    endpoints: Option<Vec<String>>,
    ca: Option<Zeroizing<String>>,
    crt: Option<Zeroizing<String>>,
    key: Option<Zeroizing<String>>,
    auth: Option<IgnoredAny>,
}

const PROGRAM: &str = "it has a program run: only what is written in the file itself counts";
const OTHER_FILE: &str = "it names another file: only what is written in the file itself counts";
const NO_CERTIFICATE: &str = "only a client certificate with its key is taken";
const NOT_TAKEN: &str = "it cannot be passed on";

/// Reads what the current context of a kubeconfig opens.
///
/// # Errors
///
/// [`Rejected`] names the part that cannot be used.
pub fn kubeconfig(path: &Path, text: &[u8]) -> Result<KubernetesAccess, Rejected> {
    let origin = Origin::File(path.to_owned());
    let access = read(text).and_then(kubernetes);
    match access {
        Ok((server, client)) => Ok(KubernetesAccess { origin, server, client }),
        Err((field, reason)) => Err(Rejected { opens: Opens::Kubernetes, origin, field, reason }),
    }
}

/// Reads what the current context of a talosconfig opens.
///
/// # Errors
///
/// [`Rejected`] names the part that cannot be used.
pub fn talosconfig(path: &Path, text: &[u8]) -> Result<TalosAccess, Rejected> {
    let origin = Origin::File(path.to_owned());
    match read(text).and_then(talos) {
        Ok((name, endpoints, client)) => {
            Ok(TalosAccess { origin, cluster_name: Some(name), endpoints, client })
        }
        Err((field, reason)) => Err(Rejected { opens: Opens::Talos, origin, field, reason }),
    }
}

/// Reads YAML. What its reader says of a fault is not repeated: it may quote the file.
fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    let text = std::str::from_utf8(text).map_err(|_| ("the whole", "it is not UTF-8"))?;
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|_| ("the whole", "it is not YAML with the members that it should have"))
}

fn kubernetes(file: Kubeconfig) -> Result<(String, ClientCertificate), Fault> {
    let name = file.current_context.filter(|name| !name.is_empty());
    let name = name.ok_or(("current-context", "it is absent"))?;
    let context = file.contexts.into_iter().flatten().find(|context| context.name == name);
    let context = context.ok_or(("current-context", "the file has no such context"))?.context;
    let cluster = file.clusters.into_iter().flatten().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.ok_or(("cluster of the current context", "the file has no such cluster"))?.cluster;
    let user = file.users.into_iter().flatten().find(|user| user.name == context.user);
    let user = user.ok_or(("user of the current context", "the file has no such user"))?.user;
    let refused = [
        ("exec", &user.exec, PROGRAM),
        ("auth-provider", &user.auth_provider, PROGRAM),
        ("client-certificate", &user.client_certificate, OTHER_FILE),
        ("client-key", &user.client_key, OTHER_FILE),
        ("tokenFile", &user.token_file, OTHER_FILE),
        ("token", &user.token, NO_CERTIFICATE),
        ("username", &user.username, NO_CERTIFICATE),
        ("password", &user.password, NO_CERTIFICATE),
        ("as", &user.impersonated, NOT_TAKEN),
        ("certificate-authority", &cluster.certificate_authority, OTHER_FILE),
        ("tls-server-name", &cluster.tls_server_name, NOT_TAKEN),
        ("proxy-url", &cluster.proxy_url, NOT_TAKEN),
    ];
    if let Some((field, _, reason)) = refused.into_iter().find(|(_, member, _)| member.is_some()) {
        return Err((field, reason));
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(("insecure-skip-tls-verify", "the server has to prove who it is"));
    }
    let server = cluster.server.filter(|server| server.starts_with("https://"));
    let server = server.ok_or(("server", "it is no https:// URL"))?;
    let client = ClientCertificate {
        ca: pem("certificate-authority-data", CERTIFICATE, cluster.certificate_authority_data)?,
        certificate: pem("client-certificate-data", CERTIFICATE, user.client_certificate_data)?,
        key: pem("client-key-data", KEY, user.client_key_data)?,
    };
    Ok((server, client))
}

fn talos(file: Talosconfig) -> Result<(String, Vec<String>, ClientCertificate), Fault> {
    let name = file.context.filter(|name| !name.is_empty()).ok_or(("context", "it is absent"))?;
    let context = file.contexts.and_then(|mut contexts| contexts.remove(&name));
    let context = context.ok_or(("context", "the file has no such context"))?;
    if context.auth.is_some() {
        return Err(("auth", NO_CERTIFICATE));
    }
    let client = ClientCertificate {
        ca: pem("ca", CERTIFICATE, context.ca)?,
        certificate: pem("crt", CERTIFICATE, context.crt)?,
        key: pem("key", KEY, context.key)?,
    };
    Ok((name, context.endpoints.unwrap_or_default(), client))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// Something that looks like PEM, in base64.
    fn part(label: &str) -> String {
        STANDARD.encode(format!("-----BEGIN {label}-----\nAA==\n-----END {label}-----\n"))
    }

    fn file() -> String {
        let (certificate, key) = (part("CERTIFICATE"), part("EC PRIVATE KEY"));
        format!(
            "apiVersion: v1
kind: Config
current-context: here
contexts:
- name: elsewhere
  context: {{ cluster: elsewhere, user: elsewhere }}
- name: here
  context: {{ cluster: here, user: admin, namespace: x }}
clusters:
- name: here
  cluster:
    server: https://192.0.2.7:6443
    certificate-authority-data: {certificate}
users:
- name: elsewhere
  user: {{ exec: {{ command: /bin/false }} }}
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
        )
    }

    fn fault(text: &str) -> (&'static str, String) {
        let rejected = kubeconfig(Path::new("/etc/k"), text.as_bytes()).unwrap_err();
        assert!(!format!("{rejected:?}").contains(&part("EC PRIVATE KEY")));
        (rejected.field, rejected.reason.to_owned())
    }

    #[test]
    fn the_current_context_of_a_kubeconfig_is_taken_and_written_again() {
        let access = kubeconfig(Path::new("/etc/k"), file().as_bytes()).unwrap();
        assert_eq!(access.server, "https://192.0.2.7:6443");
        assert_eq!(access.origin.to_string(), "the file /etc/k");
        let again = kubeconfig(Path::new("/etc/k"), access.kubeconfig("web").as_bytes()).unwrap();
        assert_eq!(again, access);
        assert!(!format!("{access:?}").contains(&part("EC PRIVATE KEY")));
        // JSON is YAML.
        let json: serde_json::Value = serde_saphyr::from_str(&file()).unwrap();
        assert_eq!(kubeconfig(Path::new("/etc/k"), json.to_string().as_bytes()).unwrap(), access);
    }

    #[test]
    fn nothing_that_a_kubeconfig_names_is_run_or_read() {
        let in_user = |member: &str| file().replace("  user:\n", &format!("  user:\n    {member}\n"));
        let in_cluster =
            |member: &str| file().replace("  cluster:\n", &format!("  cluster:\n    {member}\n"));
        for (text, field, reason) in [
            (in_user("exec: { command: sh }"), "exec", "a program run"),
            (in_user("auth-provider: { name: gcp }"), "auth-provider", "a program run"),
            (in_user("client-certificate: /x"), "client-certificate", "another file"),
            (in_user("client-key: ./x"), "client-key", "another file"),
            (in_user("tokenFile: /x"), "tokenFile", "another file"),
            (in_user("token: abc"), "token", "only a client certificate"),
            (in_user("username: abc"), "username", "only a client certificate"),
            (in_user("as: abc"), "as", "passed on"),
            (in_cluster("certificate-authority: /x"), "certificate-authority", "another file"),
            (in_cluster("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify", "prove"),
            (in_cluster("proxy-url: http://x"), "proxy-url", "passed on"),
            (file().replace("https:", "http:"), "server", "https://"),
            (file().replace("current-context: here", "current-context: gone"), "current-context", "no such"),
            (file().replace("current-context: here\n", ""), "current-context", "absent"),
            (file().replace("user: admin", "user: gone"), "user of the current context", "no such"),
            (file().replace("cluster: here", "cluster: gone"), "cluster of the current context", "no such"),
            (file().replace("client-key-data", "other"), "client-key-data", "absent"),
            (file().replace(&part("EC PRIVATE KEY"), "no-base64!"), "client-key-data", "base64"),
            (file().replace(&part("EC PRIVATE KEY"), "QUJD"), "client-key-data", "PEM"),
            ("- [".to_owned(), "the whole", "YAML"),
            ("clusters: 7".to_owned(), "the whole", "YAML"),
        ] {
            let (at, why) = fault(&text);
            assert_eq!(at, field, "{text}");
            assert!(why.contains(reason), "{why}");
        }
        let bytes = kubeconfig(Path::new("/etc/k"), b"\xff\xfe").unwrap_err();
        assert_eq!(bytes.reason, "it is not UTF-8");
    }

    #[test]
    fn the_current_context_of_a_talosconfig_is_taken_and_written_again() {
        let (certificate, key) = (part("CERTIFICATE"), part("ED25519 PRIVATE KEY"));
        let text = format!(
            "context: prod\ncontexts:\n  prod:\n    endpoints: [192.0.2.1, \"2001:db8::1\"]\n    nodes: [x]\n    ca: {certificate}\n    crt: {certificate}\n    key: {key}\n  other: {{}}\n"
        );
        let read = |text: &str| talosconfig(Path::new("/etc/t"), text.as_bytes());
        let access = read(&text).unwrap();
        assert_eq!(access.endpoints, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(access.cluster_name.as_deref(), Some("prod"));
        assert_eq!(read(&access.talosconfig("prod")).unwrap(), access);
        for (text, field) in [
            (text.replace("context: prod", "context: gone"), "context"),
            (text.replace("context: prod", "context: other"), "ca"),
            (text.replace("    nodes: [x]", "    auth: { siderov1: {} }"), "auth"),
            (text.replace("    key: ", "    kee: "), "key"),
        ] {
            assert_eq!(read(&text).unwrap_err().field, field, "{text}");
        }
    }
}
