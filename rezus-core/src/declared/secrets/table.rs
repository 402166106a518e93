//! Where well-known resource types hold secrets, whether their state marks them or not.
//!
//! Providers mark what they know to be secret, but writers of states keep those marks only since Terraform 1.8 and
//! OpenTofu 1.8, and OpenTofu drops them for data sources. A path names members; lists are passed through, `*` is
//! every member. What turns out to be harmless in some release of a provider stays hidden: that costs one field.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::SecretKind::{self, Credential as C, Document as D};
use super::{RuleStep, SecretRule};

type Rule = (SecretKind, &'static str);

const TALOS_SECRETS: [Rule; 6] = [
    (C, "client_configuration.client_key"),
    (C, "machine_secrets.cluster.secret"),
    (C, "machine_secrets.secrets"),
    (C, "machine_secrets.trustdinfo.token"),
    (C, "machine_secrets.certs.*.key"),
    (D, "client_configuration.client_certificate"),
];

const TALOS_CONFIGURATION: [Rule; 8] = [
    (C, "client_configuration.client_key"),
    (C, "kubernetes_client_configuration.client_key"),
    (D, "config_patches"),
    (D, "kubeconfig"),
    (D, "kubeconfig_raw"),
    (D, "machine_configuration"),
    (D, "machine_configuration_input"),
    (D, "talos_config"),
];

const KUBERNETES_SECRET: [Rule; 2] = [(C, "data"), (C, "binary_data")];
const KUBERNETES_CLUSTER: [Rule; 8] = [
    (D, "kube_config"),
    (D, "kube_config_raw"),
    (D, "kube_admin_config"),
    (D, "kube_admin_config_raw"),
    (C, "kube_config.token"),
    (C, "kube_config.password"),
    (C, "kube_config.client_key"),
    (C, "kube_admin_config.client_key"),
];
const FILE: [Rule; 3] = [(D, "content"), (D, "content_base64"), (D, "sensitive_content")];
const CLOUDINIT: [Rule; 2] = [(D, "part"), (D, "rendered")];
const SOPS: [Rule; 2] = [(C, "data"), (D, "raw")];
const AWS_MACHINE: [Rule; 3] = [(D, "user_data"), (D, "user_data_base64"), (C, "password_data")];
const GOOGLE_MACHINE: [Rule; 4] = [
    (D, "metadata.user-data"),
    (D, "metadata.startup-script"),
    (D, "metadata_startup_script"),
    (D, "metadata.windows-startup-script-ps1"),
];
const AZURE_MACHINE: [Rule; 6] = [
    (C, "admin_password"),
    (D, "custom_data"),
    (D, "user_data"),
    (D, "secret"),
    (C, "os_profile.admin_password"),
    (D, "os_profile.custom_data"),
];
const PROXMOX_MACHINE: [Rule; 1] = [(C, "initialization.user_account.password")];
const VULTR_MACHINE: [Rule; 3] = [(C, "default_password"), (C, "kvm"), (D, "user_data")];
const METAL_MACHINE: [Rule; 3] = [(C, "root_password"), (D, "user_data"), (D, "custom_data")];
const VAULT: [Rule; 10] = [
    (C, "data"),
    (D, "data_json"),
    (C, "client_token"),
    (C, "secret_id"),
    (C, "wrapping_token"),
    (C, "password"),
    (C, "private_key"),
    (C, "secret_key"),
    (C, "security_token"),
    (C, "token"),
];

const TABLE: &[(&[&str], &[Rule])] = &[
    (&["talos_machine_secrets"], &TALOS_SECRETS),
    (&["talos_machine_configuration"], &TALOS_SECRETS),
    (
        &[
            "talos_machine_configuration",
            "talos_machine_configuration_apply",
            "talos_machine",
            "talos_machine_bootstrap",
            "talos_machine_disks",
            "talos_cluster",
            "talos_cluster_health",
            "talos_cluster_kubeconfig",
            "talos_client_configuration",
        ],
        &TALOS_CONFIGURATION,
    ),
    (&["random_password"], &[(C, "result"), (C, "bcrypt_hash")]),
    (&["random_bytes"], &[(C, "base64"), (C, "hex")]),
    (
        &["tls_private_key"],
        &[(C, "private_key_pem"), (C, "private_key_openssh"), (C, "private_key_pem_pkcs8")],
    ),
    (&["tls_self_signed_cert", "tls_cert_request"], &[(C, "private_key_pem")]),
    (&["tls_locally_signed_cert"], &[(C, "ca_private_key_pem")]),
    (&["local_file", "local_sensitive_file"], &FILE),
    (&["kubernetes_secret", "kubernetes_secret_v1", "kubernetes_secret_v1_data"], &KUBERNETES_SECRET),
    (&["kubernetes_token_request", "kubernetes_token_request_v1"], &[(C, "token")]),
    (
        &["kubernetes_manifest"],
        &[(D, "manifest"), (D, "object"), (C, "manifest.stringData"), (C, "object.stringData")],
    ),
    (
        &["kubectl_manifest"],
        &[(D, "yaml_body"), (D, "yaml_body_parsed"), (D, "yaml_incluster"), (D, "live_manifest_incluster")],
    ),
    (
        &["helm_release"],
        &[
            (D, "values"),
            (D, "set.value"),
            (D, "set_list.value"),
            (D, "set_sensitive"),
            (C, "set_sensitive.value"),
            (D, "set_wo"),
            (C, "repository_password"),
            (D, "metadata.values"),
            (D, "metadata.notes"),
            (D, "manifest"),
        ],
    ),
    (
        &["helm_template"],
        &[(D, "values"), (D, "set.value"), (D, "set_sensitive"), (D, "manifest"), (D, "manifests")],
    ),
    (&["template_file"], &[(D, "rendered"), (D, "vars")]),
    (&["cloudinit_config", "template_cloudinit_config"], &CLOUDINIT),
    (&["external"], &[(D, "result"), (D, "query")]),
    (&["http"], &[(D, "request_headers"), (D, "response_body"), (D, "body")]),
    (&["sops_file", "sops_external"], &SOPS),
    (&["terraform_remote_state"], &[(D, "outputs"), (D, "config"), (D, "defaults")]),
    (&["oci_core_instance"], &[(D, "metadata.user_data"), (D, "extended_metadata"), (D, "ipxe_script")]),
    (&["oci_core_instance_configuration"], &[(D, "instance_details.launch_details.metadata")]),
    (&["openstack_compute_instance_v2"], &[(C, "admin_pass"), (D, "personality.content")]),
    (&["openstack_compute_keypair_v2"], &[(C, "private_key")]),
    (&["openstack_identity_application_credential_v3"], &[(C, "secret")]),
    (&["aws_instance", "aws_spot_instance_request"], &AWS_MACHINE),
    (&["aws_launch_template", "aws_launch_configuration"], &AWS_MACHINE),
    (&["aws_iam_access_key"], &[(C, "secret"), (C, "ses_smtp_password_v4")]),
    (&["aws_db_instance"], &[(C, "password")]),
    (&["aws_rds_cluster"], &[(C, "master_password")]),
    (&["aws_secretsmanager_secret_version"], &[(C, "secret_string"), (C, "secret_binary")]),
    (&["aws_eks_cluster_auth"], &[(C, "token")]),
    (&["google_compute_instance", "google_compute_instance_template"], &GOOGLE_MACHINE),
    (&["google_service_account_key"], &[(C, "private_key")]),
    (&["google_sql_user"], &[(C, "password")]),
    (&["google_secret_manager_secret_version"], &[(C, "secret_data")]),
    (&["google_client_config"], &[(C, "access_token"), (C, "id_token")]),
    (
        &[
            "azurerm_linux_virtual_machine",
            "azurerm_windows_virtual_machine",
            "azurerm_virtual_machine",
            "azurerm_linux_virtual_machine_scale_set",
            "azurerm_windows_virtual_machine_scale_set",
            "azurerm_orchestrated_virtual_machine_scale_set",
        ],
        &AZURE_MACHINE,
    ),
    (&["azurerm_key_vault_secret"], &[(C, "value")]),
    (&["azurerm_kubernetes_cluster", "digitalocean_kubernetes_cluster"], &KUBERNETES_CLUSTER),
    (&["scaleway_k8s_cluster"], &[(D, "kubeconfig"), (C, "kubeconfig.token")]),
    (&["digitalocean_droplet"], &[(D, "user_data")]),
    (&["digitalocean_database_cluster"], &[(C, "password"), (C, "uri"), (C, "private_uri")]),
    (
        &[
            "proxmox_virtual_environment_vm",
            "proxmox_virtual_environment_vm2",
            "proxmox_virtual_environment_cloned_vm",
            "proxmox_virtual_environment_container",
            "proxmox_vm",
            "proxmox_cloned_vm",
        ],
        &PROXMOX_MACHINE,
    ),
    (&["proxmox_virtual_environment_file"], &[(D, "source_raw.data")]),
    (
        &["proxmox_vm_qemu", "proxmox_lxc"],
        &[(C, "cipassword"), (C, "password"), (C, "ssh_private_key"), (D, "sshkeys")],
    ),
    (&["libvirt_cloudinit_disk"], &[(D, "user_data"), (D, "meta_data"), (D, "network_config")]),
    (&["libvirt_ignition"], &[(D, "content")]),
    (
        &["vsphere_virtual_machine"],
        &[
            (D, "clone.customize.windows_sysprep_text"),
            (D, "clone.customize.linux_options.script_text"),
            (C, "clone.customize.windows_options.admin_password"),
            (C, "clone.customize.windows_options.domain_admin_password"),
            (C, "clone.customize.windows_options.product_key"),
            (D, "extra_config"),
            (D, "vapp.properties"),
        ],
    ),
    (&["vultr_instance", "vultr_bare_metal_server"], &VULTR_MACHINE),
    (&["vultr_kubernetes"], &[(D, "kube_config"), (C, "client_key")]),
    (&["scaleway_instance_server"], &[(D, "cloud_init"), (D, "user_data")]),
    (&["scaleway_baremetal_server"], &[(C, "password"), (C, "service_password"), (D, "cloud_init")]),
    (&["equinix_metal_device", "metal_device", "packet_device"], &METAL_MACHINE),
    (&["xenorchestra_vm"], &[(D, "cloud_config"), (D, "cloud_network_config")]),
    (&["xenorchestra_cloud_config"], &[(D, "template")]),
    (&["linode_instance"], &[(C, "root_pass"), (D, "metadata.user_data"), (D, "stackscript_data")]),
    (&["linode_lke_cluster"], &[(D, "kubeconfig")]),
    (&["tailscale_tailnet_key"], &[(C, "key")]),
    (&["cloudflare_api_token"], &[(C, "value")]),
];

/// Returns the built-in rules for a resource type.
pub(super) fn rules(resource_type: &str) -> &'static [SecretRule] {
    let key = if resource_type.starts_with("vault_") { "vault_" } else { resource_type };
    all().get(key).map(Vec::as_slice).unwrap_or_default()
}

/// Returns all built-in rules by resource type; those of `vault_` are for all types that begin so.
pub(super) fn all() -> &'static HashMap<&'static str, Vec<SecretRule>> {
    static RULES: OnceLock<HashMap<&str, Vec<SecretRule>>> = OnceLock::new();
    RULES.get_or_init(|| {
        let mut rules: HashMap<&str, Vec<SecretRule>> = HashMap::new();
        for (types, places) in TABLE {
            for resource_type in *types {
                rules.entry(resource_type).or_default().extend(places.iter().map(rule));
            }
        }
        rules.entry("vault_").or_default().extend(VAULT.iter().map(rule));
        rules
    })
}

fn rule((kind, path): &Rule) -> SecretRule {
    let step = |name: &'static str| {
        if name == "*" { RuleStep::Any } else { RuleStep::Member(name.into()) }
    };
    SecretRule { path: path.split('.').map(step).collect(), kind: *kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_rules_of_all_their_lines() {
        assert_eq!(
            rules("talos_machine_configuration").len(),
            TALOS_SECRETS.len() + TALOS_CONFIGURATION.len()
        );
        assert_eq!(rules("vault_kv_secret_v2"), rules("vault_token"));
        assert_eq!(rules("null_resource"), []);
        let certs = &rules("talos_machine_secrets")[4];
        assert_eq!(certs.path[2], RuleStep::Any);
    }
}
