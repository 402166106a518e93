//! What a caller shows.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_core::access::TokenSecret;

use crate::peer::Peer;

/// What a caller shows to prove who they are.
#[derive(Clone, Debug)]
pub enum Credential {
    /// A token.
    Token(TokenSecret),
    /// A certificate that the TLS layer has checked.
    Certificate {
        /// The subject's common name: a user.
        common_name: String,
        /// The subject's organisations: groups.
        organizations: Vec<String>,
    },
}

impl Credential {
    /// Reads what a request shows: a token in `Authorization`, as `Bearer` (RFC 6750) or as the password of any user in
    /// `Basic` (RFC 7617), else the certificate of its connection. `None` if it shows nothing.
    ///
    /// # Errors
    ///
    /// Why what is shown cannot be one, in words that do not repeat it.
    pub fn of(headers: &HeaderMap, peer: &Peer) -> Result<Option<Self>, &'static str> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        match (shown.next(), shown.next()) {
            (None, _) => Ok(Self::certificate(peer)),
            (Some(value), None) => Self::token(value).map(Some),
            (Some(_), Some(_)) => Err("more than one credential"),
        }
    }

    fn token(value: &HeaderValue) -> Result<Self, &'static str> {
        let (scheme, rest) =
            value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or("malformed credential")?;
        let rest = rest.trim();
        let secret = if scheme.eq_ignore_ascii_case("bearer") {
            TokenSecret::parse(rest)
        } else if scheme.eq_ignore_ascii_case("basic") {
            let pair = STANDARD.decode(rest).map_err(|_| "malformed credential")?;
            let pair = std::str::from_utf8(&pair).map_err(|_| "malformed credential")?;
            let (_, password) = pair.split_once(':').ok_or("malformed credential")?;
            TokenSecret::parse(password)
        } else {
            return Err("unknown scheme");
        };
        secret.map(Self::Token).map_err(|_| "malformed token")
    }

    fn certificate(peer: &Peer) -> Option<Self> {
        let (common_name, organizations) = peer.certificate()?;
        Some(Self::Certificate { common_name, organizations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<[u8; 32]>, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        let peer = Peer::Address(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
        Ok(Credential::of(&headers, &peer)?.map(|credential| match credential {
            Credential::Token(token) => *token.digest().as_bytes(),
            Credential::Certificate { .. } => [0; 32],
        }))
    }

    #[test]
    fn a_token_is_read_from_either_scheme_whatever_the_user() {
        let token = TokenSecret::from_random([7; 32]);
        let (text, digest) = (token.reveal(), Some(*token.digest().as_bytes()));
        assert_eq!(read(&[&format!("Bearer {text}")]), Ok(digest));
        assert_eq!(read(&[&format!("bearer  {text}")]), Ok(digest));
        for user in ["", "rezus", "a b"] {
            let pair = STANDARD.encode(format!("{user}:{text}"));
            assert_eq!(read(&[&format!("Basic {pair}")]), Ok(digest), "{user}");
        }
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn what_is_no_token_is_none_and_is_not_repeated() {
        let token = TokenSecret::from_random([7; 32]).reveal();
        let no_colon = format!("Basic {}", STANDARD.encode(&token));
        for bad in
            ["", "Bearer", "Bearer ", "Bearer hunter2", "Basic %%%", "Digest x", "Basic OmFiYw==", &no_colon]
        {
            let error = read(&[bad]).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let bearer = format!("Bearer {token}");
        assert_eq!(read(&[&bearer, &bearer]), Err("more than one credential"));
    }
}
