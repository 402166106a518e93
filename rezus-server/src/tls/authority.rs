//! The server's own certificate authority, and the certificate that it signs for the server.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rezus_core::base::Timestamp;
use rustls::pki_types::CertificateDer;

use super::facts::Facts;
use super::{Name, Pair, TlsError, files};

const DAY: Duration = Duration::from_hours(24);

/// How long an authority lasts: who trusts it is told once.
const AUTHORITY_LASTS: Duration = Duration::from_hours(24 * 3_652);

/// How long a server's certificate lasts. Nobody has to do anything about it.
const CERTIFICATE_LASTS: Duration = Duration::from_hours(24 * 90);

/// How long before its end a server's certificate is replaced.
const RENEWED_BEFORE: Duration = Duration::from_hours(24 * 30);

/// How long before its end a start warns of an authority's.
const WARNED_BEFORE: Duration = Duration::from_hours(24 * 365);

/// A certificate authority of one server: it signs that server's certificate and no other authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    facts: Facts,
    directory: PathBuf,
}

impl Authority {
    /// Opens the authority kept in a directory, or makes one where there is nothing of one.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file that cannot be read, written or used. An authority is never replaced: clients trust it.
    pub fn open_or_make(directory: &Path, now: Timestamp) -> Result<Self, TlsError> {
        files::make_directory(directory)?;
        let (certificate, key) = (directory.join("ca.pem"), directory.join("ca-key.pem"));
        match (certificate.exists(), key.exists()) {
            (true, true) => {}
            // A key alone is what is left of a making that was interrupted: nobody was shown its certificate.
            (false, _) => make(&certificate, &key, now)?,
            (true, false) => return Err(TlsError::NoAuthorityKey { certificate, key }),
        }
        let authority = Self::open(directory, &certificate, &key)?;
        if authority.facts.ends.minus(WARNED_BEFORE) <= now {
            tracing::warn!(
                ends = %authority.facts.ends,
                path = %directory.display(),
                "the TLS authority nears its end: move its directory away to make another, and tell clients to trust that"
            );
        }
        Ok(authority)
    }

    fn open(directory: &Path, path: &Path, key_path: &Path) -> Result<Self, TlsError> {
        let pem = files::read(path)?;
        let certificate = files::certificates(&pem, path)?.swap_remove(0);
        let facts =
            Facts::of(&certificate).ok_or_else(|| TlsError::unsound(path, "it holds no certificate"))?;
        let key_pem = files::read(key_path)?;
        let key = KeyPair::from_pem(&key_pem).map_err(|error| TlsError::unsound(key_path, error))?;
        let private = files::key(&key_pem, key_path)?;
        super::matching(vec![certificate.clone()], private, key_path)?;
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).map_err(|error| TlsError::unsound(path, error))?;
        Ok(Self { issuer, certificate, pem, facts, directory: directory.to_owned() })
    }

    /// Returns the authority's certificate as PEM: what a client needs to trust the server.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the server's certificate and key, and makes new ones if those kept are not this authority's, not for
    /// exactly these names, or near their end.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file that cannot be written.
    pub fn server_pair(&self, names: &BTreeSet<Name>, now: Timestamp) -> Result<Pair, TlsError> {
        let (certificate, key) = (self.directory.join("server.pem"), self.directory.join("server-key.pem"));
        let kept = match Pair::read(&certificate, &key) {
            Ok(pair) => {
                Facts::of(&pair.chain[0]).filter(|facts| self.is_good(facts, names, now)).map(|_| pair)
            }
            Err(_) => None,
        };
        if let Some(pair) = kept {
            return Ok(pair);
        }
        let (certificate_pem, key_pem) = self.sign(names, now)?;
        files::write(&key, &key_pem)?;
        files::write(&certificate, &certificate_pem)?;
        tracing::info!(path = %certificate.display(), "made a certificate for the TLS listener");
        Pair::read(&certificate, &key)
    }

    fn is_good(&self, certificate: &Facts, names: &BTreeSet<Name>, now: Timestamp) -> bool {
        let is_near_its_end = certificate.ends.minus(RENEWED_BEFORE) <= now;
        // One that ends with its authority cannot be replaced by one that lasts longer.
        let can_be_renewed = certificate.ends < self.facts.ends;
        certificate.signed_by == self.facts.key
            && certificate.names == *names
            && !(is_near_its_end && can_be_renewed)
    }

    fn sign(&self, names: &BTreeSet<Name>, now: Timestamp) -> Result<(String, String), TlsError> {
        let key = KeyPair::generate()?;
        let mut params = parameters("rezus", now, after(now, CERTIFICATE_LASTS).min(self.facts.ends))?;
        params.subject_alt_names = names.iter().map(alternative).collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}

/// Without the key.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("directory", &self.directory).finish_non_exhaustive()
    }
}

fn make(certificate: &Path, key_path: &Path, now: Timestamp) -> Result<(), TlsError> {
    let key = KeyPair::generate()?;
    // Authorities of several servers lie side by side in a client's store: no two have one name.
    let id = uuid::Uuid::new_v4().simple().to_string();
    let name = format!("rezus authority {}", &id[..8]);
    let mut params = parameters(&name, now, after(now, AUTHORITY_LASTS))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let pem = params.self_signed(&key)?.pem();
    // The key first: a certificate is there only with its key.
    files::write(key_path, &key.serialize_pem())?;
    files::write(certificate, &pem)
}

/// Parameters of a certificate that begins a day ago, for clients whose clock is behind.
fn parameters(common_name: &str, now: Timestamp, ends: Timestamp) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let (year, month, of_month) = day(now.minus(DAY))?;
    params.not_before = rcgen::date_time_ymd(year, month, of_month);
    let (year, month, of_month) = day(ends)?;
    params.not_after = rcgen::date_time_ymd(year, month, of_month);
    Ok(params)
}

fn alternative(name: &Name) -> Result<SanType, TlsError> {
    Ok(match name {
        Name::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
        Name::Address(address) => SanType::IpAddress(*address),
    })
}

/// Year, month and day that a point in time lies in: certificates begin and end at midnight.
fn day(at: Timestamp) -> Result<(i32, u8, u8), TlsError> {
    let date = jiff::Timestamp::from_millisecond(at.as_millis()).map_err(|_| TlsError::Clock(at))?;
    let date = date.to_zoned(jiff::tz::TimeZone::UTC).date();
    match (u8::try_from(date.month()), u8::try_from(date.day())) {
        // What the form of times in certificates can hold (RFC 5280, section 4.1.2.5).
        (Ok(month), Ok(day)) if date.year() >= 0 => Ok((date.year().into(), month, day)),
        _ => Err(TlsError::Clock(at)),
    }
}

fn after(now: Timestamp, span: Duration) -> Timestamp {
    Timestamp::from_millis(
        now.as_millis().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_796_065_837_000);

    fn names(names: &[&str]) -> BTreeSet<Name> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn facts(pair: &Pair) -> Facts {
        Facts::of(&pair.chain[0]).unwrap()
    }

    #[test]
    fn an_authority_is_made_once_and_closed_to_others() {
        let directory = tempfile::tempdir().unwrap();
        let tls = directory.path().join("tls");
        let made = Authority::open_or_make(&tls, NOW).unwrap();
        let again = Authority::open_or_make(&tls, NOW).unwrap();
        assert_eq!(made.pem(), again.pem());
        assert!(made.pem().starts_with("-----BEGIN CERTIFICATE-----"));
        let years = made.facts.ends.since(NOW).as_secs() / (365 * 86_400);
        assert_eq!(years, 10);
        made.server_pair(&names(&["localhost"]), NOW).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&tls), 0o700);
        let mut files: Vec<String> = std::fs::read_dir(&tls)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
                entry.file_name().into_string().unwrap()
            })
            .collect();
        files.sort();
        assert_eq!(files, ["ca-key.pem", "ca.pem", "server-key.pem", "server.pem"]);
        assert!(!format!("{made:?}").contains("KEY"));
    }

    #[test]
    fn a_certificate_is_kept_until_shortly_before_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_make(directory.path(), NOW).unwrap();
        let wanted = names(&["localhost", "127.0.0.1", "::1", "*.rezus.example"]);
        let first = authority.server_pair(&wanted, NOW).unwrap();
        assert_eq!(facts(&first).names, wanted);
        assert_eq!(facts(&first).signed_by, authority.facts.key);
        let day = |day: u64| after(NOW, DAY.saturating_mul(u32::try_from(day).unwrap()));
        let later = authority.server_pair(&wanted, day(58)).unwrap();
        assert_eq!(later.chain, first.chain);
        let renewed = authority.server_pair(&wanted, day(61)).unwrap();
        assert_ne!(renewed.chain, first.chain);
        assert!(facts(&renewed).ends > day(149) && facts(&renewed).ends <= day(151));
        // A clock that was set back finds nothing to do.
        assert_eq!(authority.server_pair(&wanted, NOW).unwrap().chain, renewed.chain);
    }

    #[test]
    fn a_certificate_lasts_no_longer_than_its_authority_and_is_then_not_made_over_and_over() {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_make(directory.path(), NOW).unwrap();
        let late = authority.facts.ends.minus(DAY.saturating_mul(10));
        let last = authority.server_pair(&names(&["localhost"]), late).unwrap();
        assert_eq!(facts(&last).ends, authority.facts.ends);
        assert_eq!(authority.server_pair(&names(&["localhost"]), late).unwrap().chain, last.chain);
    }

    #[test]
    fn other_names_another_authority_and_damage_need_a_new_certificate() {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open_or_make(directory.path(), NOW).unwrap();
        let local = names(&["localhost"]);
        let first = authority.server_pair(&local, NOW).unwrap();
        let more = names(&["localhost", "rezus.example"]);
        let second = authority.server_pair(&more, NOW).unwrap();
        assert_ne!(second.chain, first.chain);
        assert_eq!(facts(&second).names, more);

        std::fs::write(directory.path().join("server-key.pem"), "cut").unwrap();
        let third = authority.server_pair(&more, NOW).unwrap();
        assert_ne!(third.chain, second.chain);

        let elsewhere = tempfile::tempdir().unwrap();
        let other = Authority::open_or_make(elsewhere.path(), NOW).unwrap();
        for file in ["server.pem", "server-key.pem"] {
            std::fs::copy(directory.path().join(file), elsewhere.path().join(file)).unwrap();
        }
        assert_ne!(other.server_pair(&more, NOW).unwrap().chain, third.chain);
    }

    #[test]
    fn an_authority_that_cannot_be_used_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        drop(Authority::open_or_make(directory.path(), NOW).unwrap());
        let (certificate, key) = (directory.path().join("ca.pem"), directory.path().join("ca-key.pem"));
        let kept = std::fs::read(&certificate).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        drop(Authority::open_or_make(elsewhere.path(), NOW).unwrap());
        std::fs::copy(elsewhere.path().join("ca-key.pem"), &key).unwrap();
        let error = Authority::open_or_make(directory.path(), NOW).unwrap_err().to_string();
        assert!(error.contains("ca-key.pem"), "{error}");
        std::fs::remove_file(&key).unwrap();
        let error = Authority::open_or_make(directory.path(), NOW).unwrap_err().to_string();
        assert!(error.contains("ca-key.pem"), "{error}");
        assert_eq!(std::fs::read(&certificate).unwrap(), kept);
        std::fs::write(&certificate, "cut").unwrap();
        std::fs::write(&key, "cut").unwrap();
        let error = Authority::open_or_make(directory.path(), NOW).unwrap_err().to_string();
        assert!(error.contains("ca.pem"), "{error}");
    }

    #[test]
    fn a_clock_that_shows_no_date_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let never = Timestamp::from_millis(i64::MAX);
        assert!(matches!(Authority::open_or_make(directory.path(), never), Err(TlsError::Clock(_))));
    }
}
