//! When a registered credential expires, as far as the credential itself says.

use std::collections::BTreeMap;

use api::secret::{TLS_CERT_KEY, TOKEN_KEY};
use k8s_openapi::ByteString;
pub use register::expiry::Expiry;

use crate::span;

/// The expiry of the credential in a cluster's Secret.
pub fn registered(data: &BTreeMap<String, ByteString>) -> Expiry {
    if let Some(token) = data.get(TOKEN_KEY) {
        return Expiry::of_token(&token.0);
    }
    data.get(TLS_CERT_KEY).map_or(Expiry::Unknown, |pem| Expiry::of_certificate(&pem.0))
}

/// The time that a credential has left at `now`, in one word.
pub fn left(expiry: Expiry, now: i64) -> String {
    match expiry {
        Expiry::Never => "never".to_owned(),
        Expiry::Unknown => "-".to_owned(),
        Expiry::At(end) if end <= now => "expired".to_owned(),
        Expiry::At(end) => span::rough(end - now),
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    #[test]
    fn a_secret_with_a_certificate_says_when_it_ends() {
        let issued = Authority::new("ca").issue(&Leaf::client("c"));
        let data = BTreeMap::from([(TLS_CERT_KEY.to_owned(), ByteString(issued.chain_pem.clone().into_bytes()))]);
        let Expiry::At(end) = registered(&data) else { panic!("it ends") };
        assert!(end > now());
        assert_eq!(registered(&BTreeMap::new()), Expiry::Unknown);
    }

    #[test]
    fn what_is_left_is_told_in_a_word() {
        let all = [Expiry::Never, Expiry::Unknown, Expiry::At(100), Expiry::At(100 + 90 * 86_400)];
        assert_eq!(all.map(|expiry| left(expiry, 100)), ["never", "-", "expired", "90d"]);
    }
}
