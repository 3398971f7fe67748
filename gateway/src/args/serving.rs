//! Flags of serving TLS, with their meaning in Kubernetes' API servers.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args as Group};
use net::tls;
use net::tls::policy::{Policy, Suites, Version};
use net::tls::server::{KeyPairFiles, NamedFiles};

use crate::serving::{MainCertificate, Serving as Certificates};

#[derive(Debug, Group)]
#[group(id = "serving-tls-group")]
pub struct ServingTls {
    /// Directory of `apiserver.crt` and `apiserver.key`, created if absent; used when no
    /// certificate files are given
    #[arg(long, value_name = "DIR", default_value = "apiserver.local.config/certificates")]
    pub cert_dir: PathBuf,
    /// Another certificate and key, `CERT,KEY[:NAME,NAME]`, for clients that ask for one of the
    /// names; repeatable, re-read when it changes
    #[arg(long, value_name = "FILES")]
    pub tls_sni_cert_key: Vec<String>,
    /// Oldest TLS version accepted: `VersionTLS12` (default) or `VersionTLS13`
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12", hide_default_value = true)]
    pub tls_min_version: String,
    /// TLS 1.2 cipher suites accepted, by IANA name (default: all supported); those of TLS 1.3 are
    /// always accepted
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub tls_cipher_suites: Vec<String>,
    /// Serve HTTP/1.1 only
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    pub disable_http2_serving: bool,
}

/// The two files of the main pair, as given.
pub struct MainFiles<'a> {
    pub certificate: Option<&'a PathBuf>,
    pub private_key: Option<&'a PathBuf>,
}

/// The names for which a self-signed certificate must be valid.
pub struct CertificateNames<'a> {
    pub address: IpAddr,
    pub namespace: &'a str,
}

// === impl ServingTls ===

impl ServingTls {
    /// The serving certificates. Adds errors to `wrong`, and ignored values to `warnings`.
    pub fn parse(
        &self,
        main: &MainFiles<'_>,
        reached: &CertificateNames<'_>,
        wrong: &mut Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Certificates {
        Certificates {
            main: self.main(main, reached, wrong),
            named: self.tls_sni_cert_key.iter().filter_map(|text| named(text, wrong, warnings)).collect(),
            policy: Policy {
                oldest: version(&self.tls_min_version, wrong),
                suites: suites(&self.tls_cipher_suites, wrong, warnings),
                alpn: if self.disable_http2_serving { vec![tls::HTTP_11] } else { vec![tls::H2, tls::HTTP_11] },
            },
        }
    }

    fn main(&self, main: &MainFiles<'_>, reached: &CertificateNames<'_>, wrong: &mut Vec<String>) -> MainCertificate {
        let missing = |flag: &str, given: &str| format!("--{flag} is required with --{given}: the two make a pair");
        match (main.certificate, main.private_key) {
            (Some(certificate), Some(private_key)) => {
                let files = KeyPairFiles { certificate: certificate.clone(), private_key: private_key.clone() };
                return MainCertificate::Given(files);
            }
            (Some(_), None) => wrong.push(missing("tls-private-key-file", "tls-cert-file")),
            (None, Some(_)) => wrong.push(missing("tls-cert-file", "tls-private-key-file")),
            (None, None) => {}
        }
        MainCertificate::InDirectory { directory: self.cert_dir.clone(), names: names(reached) }
    }
}

fn version(name: &str, wrong: &mut Vec<String>) -> Version {
    match name {
        "" | "VersionTLS12" => {}
        "VersionTLS13" => return Version::Tls13,
        "VersionTLS10" | "VersionTLS11" => wrong.push(format!(
            "--tls-min-version={name}: versions before TLS 1.2 are not supported; write VersionTLS12 or VersionTLS13"
        )),
        other => {
            wrong.push(format!("--tls-min-version: unknown version {other:?}; write VersionTLS12 or VersionTLS13"));
        }
    }
    Version::Tls12
}

fn suites(names: &[String], wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> Suites {
    if names.iter().all(String::is_empty) {
        return Suites::default();
    }
    match Suites::named(names.iter().map(|name| name.trim())) {
        Ok((suites, missing)) => {
            let left_out = |name: &String| format!("--tls-cipher-suites: {name} is not available and is ignored");
            warnings.extend(missing.iter().map(left_out));
            suites
        }
        Err(error) => {
            wrong.push(format!("--tls-cipher-suites: {error}"));
            Suites::default()
        }
    }
}

/// Parses `CERT,KEY` or `CERT,KEY:NAME,NAME`. The names follow the last colon, as in
/// `k8s.io/component-base/cli/flag`.
fn named(text: &str, wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> Option<NamedFiles> {
    let (files, names) = text.rsplit_once(':').unwrap_or((text, ""));
    let (certificate, private_key) = match files.split_once(',') {
        Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() && !key.contains(',') => {
            (certificate.trim().into(), key.trim().into())
        }
        _ => {
            wrong.push(format!("--tls-sni-cert-key: {text:?} is not of the form CERT,KEY or CERT,KEY:NAME,NAME"));
            return None;
        }
    };
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let (addresses, names): (Vec<_>, Vec<_>) = names.partition(|name| name.parse::<IpAddr>().is_ok());
    let unused = |name: &&str| format!("--tls-sni-cert-key: {name} has no effect: clients send no addresses in SNI");
    warnings.extend(addresses.iter().map(unused));
    if names.is_empty() && !addresses.is_empty() {
        return None;
    }
    let names = names.into_iter().map(str::to_ascii_lowercase).collect();
    Some(NamedFiles { files: KeyPairFiles { certificate, private_key }, names })
}

/// Loopback, the listening address, the host, and the Service that the chart creates.
fn names(reached: &CertificateNames<'_>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !reached.address.is_unspecified() && !reached.address.is_loopback() {
        names.push(reached.address.to_string());
    }
    if !reached.namespace.is_empty() {
        names.push(format!("cluster-gateway.{}.svc", reached.namespace));
    }
    names
}

#[cfg(test)]
mod tests;
