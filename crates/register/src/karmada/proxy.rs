//! The proxy on the way to a member.

use api::secret::{ProxyCredentials, ProxyScheme, ProxyUrl};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::fields::{text, texts};
use crate::{Refused, Rules, parts};

const URL: &str = "spec.proxyURL";
/// The only header that a cluster Secret can represent: user and password in the proxy's URL.
const HEADER: &str = "proxy-authorization";
const SCHEME: &str = "basic";

/// Headers without a proxy are ignored, as in Karmada.
pub(super) fn read(cluster: &Value, rules: &Rules) -> Result<Option<ProxyUrl>, Refused> {
    let url = text(cluster, URL)?;
    if url.is_empty() {
        return Ok(None);
    }
    let mut proxy = parts::proxy(URL, url, rules)?;
    for (name, value) in texts(cluster, "spec.proxyHeader")? {
        let has_place = proxy.scheme != ProxyScheme::Socks5 && proxy.credentials.is_none();
        if !has_place || !name.eq_ignore_ascii_case(HEADER) {
            return Err(Refused::ProxyHeader);
        }
        proxy.credentials = Some(basic(&value).ok_or(Refused::ProxyHeader)?);
    }
    Ok(Some(proxy))
}

/// Reads `Basic <base64 of USER:PASSWORD>` (RFC 7617 §2). The URL's own rules limit the length of
/// both.
fn basic(header: &str) -> Option<ProxyCredentials> {
    let (scheme, base64) = header.trim_ascii().split_once(' ')?;
    let decoded = STANDARD.decode(base64.trim_ascii_start()).ok()?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| ProxyCredentials { user: user.to_owned(), password: password.to_owned().into() })
}
