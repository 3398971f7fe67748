//! A cluster's address, and the trust that its certificate is verified against.

use api::secret::{ConstEndpoint, Endpoint, ProxyUrl, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::document::Cluster;
use super::{Filled as _, Rules};
use crate::{Refused, parts};

const CA: &str = "certificate-authority-data";

// === impl Cluster ===

impl Cluster {
    pub(super) fn read(&self, rules: &Rules) -> Result<(ConstEndpoint, Trust, Option<String>), Refused> {
        let endpoint = ConstEndpoint { url: self.url(rules)?, proxy: self.proxy(rules)?, fallbacks: Vec::new() };
        Ok((endpoint, self.trust(rules)?, self.tls_server_name.filled().map(str::to_owned)))
    }

    fn url(&self, rules: &Rules) -> Result<Endpoint, Refused> {
        let url = self.server.filled().ok_or(Refused::Empty("server"))?;
        parts::endpoint("server", url, rules)
    }

    fn proxy(&self, rules: &Rules) -> Result<Option<ProxyUrl>, Refused> {
        self.proxy_url.filled().map(|url| parts::proxy("proxy-url", url, rules)).transpose()
    }

    /// The system's roots without a bundle.
    fn trust(&self, rules: &Rules) -> Result<Trust, Refused> {
        if self.certificate_authority.filled().is_some() {
            return Err(Refused::File("certificate-authority"));
        }
        let insecure = self.insecure_skip_tls_verify == Some(true);
        match decoded(CA, self.certificate_authority_data.filled())? {
            Some(_) if insecure => Err(api::secret::SecretError::InsecureWithCa.into()),
            Some(bundle) => parts::bundle(CA, &bundle),
            None if insecure && !rules.allow_insecure => Err(Refused::Insecure("insecure-skip-tls-verify", CA)),
            None if insecure => Ok(Trust::Insecure),
            None => Ok(Trust::SystemRoots),
        }
    }
}

/// Bytes of a field called `…-data`. Go's decoder skips line ends in base64.
pub(super) fn decoded(field: &'static str, text: Option<&str>) -> Result<Option<Vec<u8>>, Refused> {
    let Some(text) = text else { return Ok(None) };
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    STANDARD.decode(text).map(Some).map_err(|_| Refused::NotBase64(field))
}
