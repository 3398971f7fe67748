//! When a serving certificate ends, for those whom nobody else tells.

use std::time::{Duration, SystemTime};

use net::tls::end;
use rustls_pki_types::CertificateDer;

/// A pair that lies where we make pairs is renewed by nobody, so that its end is told this long
/// before.
const SOON: Duration = Duration::from_hours(30 * 24);

/// What the operator should know now about the end of `certificate`; `made` if it lies where we
/// make some.
pub(super) fn warning(certificate: &CertificateDer<'_>, made: bool, now: SystemTime) -> Option<String> {
    let at = end::of(certificate)?;
    let end = api::time::text(at);
    let left = at.duration_since(now);
    let renew = if made { "delete both files and restart, and the gateway creates a new pair" } else { "renew it" };
    match left {
        Err(_) => Some(format!("the serving certificate expired at {end}, and clients reject it: {renew}")),
        Ok(left) if made && left < SOON => Some(format!("the serving certificate expires at {end}: {renew}")),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    #[test]
    fn its_end_is_told_before_where_nobody_renews_it() {
        let day = |number: u32| SystemTime::now() + Duration::from_hours(24) * number;
        let issued =
            Authority::new("ca").issue(&Leaf::server("gateway").valid(time::Duration::ZERO, time::Duration::days(90)));
        let told = |made, days| warning(&issued.certificate_der, made, day(days)).unwrap_or_default();
        assert_eq!((told(true, 59), told(false, 89)), (String::new(), String::new()));
        assert!(told(true, 61).contains(" expires at ") && told(true, 61).contains("delete both files"));
        for made in [true, false] {
            assert!(told(made, 91).contains(" expired at "), "{}", told(made, 91));
        }
    }
}
