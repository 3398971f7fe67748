//! Authorities that are trusted side by side: while one takes the place of another there are two.

use super::{Finding, ending};
use crate::expiry::Expiry;

/// Of the CAs in a PEM file. One that has expired is only in the way while another is good.
pub fn bundle(what: &str, pem: &[u8], now: i64, remedy: &str) -> Finding {
    let Some(ends) = Expiry::of_bundle(pem) else { return ending(what, Expiry::Unknown, now, remedy) };
    let expired = ends.iter().filter(|end| **end <= now).count();
    let (Some(first), Some(last)) = (ends.iter().min(), ends.iter().max()) else {
        return ending(what, Expiry::Unknown, now, remedy);
    };
    if expired > 0 && *last > now {
        return Finding::warning(format!("{expired} of {} certificates of {what} have expired", ends.len()), remedy);
    }
    ending(what, Expiry::At(if expired > 0 { *last } else { *first }), now, remedy)
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};
    use time::Duration;

    use super::*;
    use crate::expiry::now;
    use crate::findings::SOON;
    use crate::mark::Mark;

    #[test]
    fn all_of_a_bundle_are_looked_at() {
        let authority = Authority::new("ca");
        let days = |days| {
            let leaf = Leaf::server("ca").valid(Duration::ZERO, Duration::days(days));
            authority.issue(&leaf).chain_pem.clone()
        };
        let expired = authority.issue(&Leaf::server("ca").expired()).chain_pem.clone();
        let of = |pems: &[&str]| bundle("the CA", pems.concat().as_bytes(), now(), "renew it");
        let (good, soon) = (days(400), days(SOON / 86_400 - 1));
        assert_eq!([of(&[&good]).mark, of(&[&good, &good]).mark], [Mark::Good; 2]);
        assert_eq!(of(&[&good, &soon]).mark, Mark::Warning, "the second ends first");
        let old = of(&[&good, &expired]);
        assert_eq!((old.mark, &*old.what), (Mark::Warning, "1 of 2 certificates of the CA have expired"));
        assert_eq!([of(&[&expired]).mark, of(&[&expired, &expired]).mark], [Mark::Bad; 2]);
        for unreadable in
            [&[][..], &["words"], &[&good, "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"]]
        {
            assert!(of(unreadable).what.contains("cannot be read"), "{unreadable:?}");
        }
    }
}
