//! The lists in the ConfigMap: names, headers and certificates.

use std::sync::Arc;

use super::{CONFIG_MAP, Change};
use crate::ca_bundle::CaBundle;
use crate::identity_headers::IdentityHeaders;

/// The JSON lists. Either all are taken from one version of the ConfigMap, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Lists {
    pub(super) allowed_names: Vec<String>,
    pub(super) headers: IdentityHeaders,
}

#[derive(Debug)]
pub(super) struct Authorities {
    pem: String,
    pub(super) bundle: Arc<CaBundle>,
}

/// Stores `pem` if it is new and valid.
pub(super) fn update(known: &mut Option<Authorities>, key: &str, pem: &str) -> Change {
    if pem.is_empty() {
        return Change::Absent;
    }
    if known.as_ref().is_some_and(|known| known.pem == pem) {
        return Change::None;
    }
    match CaBundle::parse(pem.as_bytes()) {
        Ok(bundle) => {
            *known = Some(Authorities { pem: pem.to_owned(), bundle: Arc::new(bundle) });
            Change::New
        }
        Err(error) => {
            tracing::warn!(config_map = CONFIG_MAP, key, %error, "CAs not usable: the last good ones stay in use");
            Change::Broken
        }
    }
}

// === impl Lists ===

impl Lists {
    /// The error is the key at fault.
    pub(super) fn parse<'a>(get: impl Fn(&str) -> &'a str) -> Result<Self, &'static str> {
        let list = |key: &'static str| match get(key) {
            "" => Ok(Vec::new()),
            json => serde_json::from_str::<Vec<String>>(json).map_err(|_| key),
        };
        let user = list("requestheader-username-headers")?;
        let uid = list("requestheader-uid-headers")?;
        let group = list("requestheader-group-headers")?;
        let extra = list("requestheader-extra-headers-prefix")?;
        let allowed_names = list("requestheader-allowed-names")?;
        Ok(Self { allowed_names, headers: IdentityHeaders::new(&user, &uid, &group, &extra) })
    }
}
