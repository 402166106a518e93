//! Who is at the other end of a connection, and through whom.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address, through the plain listener.
    Address(SocketAddr),
    /// An address, through TLS.
    Tls {
        /// Which one.
        address: SocketAddr,
        /// Whose certificate it showed, if any; it was verified.
        certificate: Option<Arc<ClientCertificate>>,
    },
    /// A process that may open the data directory's socket: an admin.
    Socket,
}

/// Who a client's certificate is for, in the words of Kubernetes: a user and the groups it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject's `CN`: the user. Never empty.
    pub common_name: String,
    /// The subject's `O`s: the groups.
    pub organizations: Vec<String>,
}

impl Peer {
    /// Returns the address; a socket has none.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) | Self::Tls { address, .. } => Some(*address),
            Self::Socket => None,
        }
    }

    /// Returns where it is, for history and audit: an IP address, or `socket`.
    pub fn from(&self) -> String {
        self.address().map_or_else(|| "socket".to_owned(), |address| address.ip().to_canonical().to_string())
    }

    /// Tells whether it is on this machine.
    pub fn is_local(&self) -> bool {
        self.address().is_none_or(|address| address.ip().to_canonical().is_loopback())
    }

    /// Returns common name and organisations of the certificate that it has proved to hold, if it has.
    pub fn certificate(&self) -> Option<(String, Vec<String>)> {
        match self {
            Self::Tls { certificate: Some(certificate), .. } => {
                Some((certificate.common_name.clone(), certificate.organizations.clone()))
            }
            Self::Tls { certificate: None, .. } | Self::Address(_) | Self::Socket => None,
        }
    }
}

/// Refuses what a browser on this machine was made to send by a page from elsewhere: to a name of that page's that
/// leads here (DNS rebinding), or across origins (CSRF). On the plain listener, coming from this machine is all the right
/// that a request has. Over TLS a name that leads here does not fit the certificate, and no browser adds a token by
/// itself; but a client certificate it does show for any page. The socket is out of a browser's reach.
pub fn guarded(routes: Router) -> Router {
    routes.layer(middleware::from_fn(guard))
}

async fn guard(request: Request, next: Next) -> Response {
    let objection = match request.extensions().get() {
        Some(ConnectInfo(Peer::Socket | Peer::Tls { certificate: None, .. })) => None,
        Some(ConnectInfo(Peer::Tls { certificate: Some(_), .. })) => objection_to_a_page(&request),
        _ => objection(&request),
    };
    match objection {
        Some(message) => {
            tracing::warn!(reason = message, "refused");
            forbidden(message)
        }
        None => next.run(request).await,
    }
}

/// Says what is wrong with a request that comes with a certificate alone, from a page of another server's.
fn objection_to_a_page(request: &Request) -> Option<&'static str> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    // HTTP/2 names the host in the address.
    let host = request.uri().authority().map(Authority::as_str).or(host);
    let is_ours = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("https://"));
        origin.is_some_and(|origin| host.is_some_and(|host| host.eq_ignore_ascii_case(origin)))
    };
    let is_foreign = !request.headers().get_all(header::ORIGIN).iter().all(is_ours);
    is_foreign.then_some(
        "a certificate alone is not taken from pages of other servers: send a token in Authorization",
    )
}

/// Says what is wrong with where a request claims to be from, and to be going.
fn objection(request: &Request) -> Option<&'static str> {
    // A request without a host is no browser's.
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_ours = |host: &HeaderValue| host.to_str().is_ok_and(|host| host.parse().is_ok_and(is_loopback));
    if !hosts.all(is_ours) || !request.uri().authority().cloned().is_none_or(is_loopback) {
        return Some(
            "the plain listener is for this machine alone: reach it as localhost, 127.0.0.1 or [::1], by no other name",
        );
    }
    // `null`, the origin of what has none to show, is no host of ours either.
    let is_ours = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        origin.and_then(|origin| origin.into_parts().authority).is_some_and(is_loopback)
    };
    if !request.headers().get_all(header::ORIGIN).iter().all(is_ours) {
        return Some(
            "the plain listener takes nothing from pages of other machines: the Origin is not this one",
        );
    }
    None
}

#[expect(clippy::needless_pass_by_value, reason = "reads better where it is used")]
fn is_loopback(authority: Authority) -> bool {
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn forbidden(message: &str) -> Response {
    let code = StatusCode::FORBIDDEN;
    let status = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Forbidden",
        "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri("/state/web");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_names_of_this_machine_are_hosts_and_origins() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::ffff:127.0.0.1]"]
        {
            assert_eq!(objection(&request(&[("host", host)])), None, "{host}");
            let origin = format!("http://{host}");
            assert_eq!(objection(&request(&[("host", host), ("origin", &origin)])), None, "{origin}");
        }
        assert_eq!(objection(&request(&[])), None);
        for host in
            ["", "x", "rezus.example:8080", "127.0.0.1.nip.io", "localhost.example", "0.0.0.0", "[::]", "::1"]
        {
            assert!(objection(&request(&[("host", host)])).is_some(), "{host}");
            let origin = format!("http://{host}");
            assert!(objection(&request(&[("host", "localhost"), ("origin", &origin)])).is_some(), "{origin}");
        }
        assert!(objection(&request(&[("host", "localhost"), ("host", "evil.example")])).is_some());
        assert!(objection(&request(&[("host", "localhost"), ("origin", "null")])).is_some());
        assert!(objection(&request(&[("host", "localhost"), ("origin", "")])).is_some());
    }

    #[test]
    fn a_certificate_alone_serves_no_page_of_another_server() {
        let host = ("host", "rezus.example:8443");
        let ours = ("origin", "https://rezus.example:8443");
        for fine in [&[host][..], &[host, ours], &[host, ("origin", "null"), ("authorization", "Bearer x")]] {
            assert_eq!(objection_to_a_page(&request(fine)), None, "{fine:?}");
        }
        for foreign in
            ["https://evil.example", "http://rezus.example:8443", "null", "https://rezus.example", ""]
        {
            assert!(objection_to_a_page(&request(&[host, ("origin", foreign)])).is_some(), "{foreign}");
        }
        assert!(objection_to_a_page(&request(&[host, ours, ("origin", "https://evil.example")])).is_some());
        assert!(objection_to_a_page(&request(&[ours])).is_some(), "no host to be of");
    }
}
