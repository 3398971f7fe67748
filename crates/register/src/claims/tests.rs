use proptest::prelude::*;

use super::*;

fn object(name: &str) -> Object {
    Object { source: "kubeconfig", reference: format!("/Secret/{name}") }
}

fn claim(name: &str, uid: &str, created: &str) -> Claim {
    let created = format!("2026-11-24T10:00:{created}Z");
    Claim { name: name.into(), uid: uid.into(), created, wish: Wish::Register("h".into()) }
}

fn holder(reference: &str, uid: &str, hash: &str, is_gone: bool) -> Holder {
    Holder::Object { object: object(reference), uid: uid.into(), hash: hash.into(), is_gone }
}

/// Two objects that claim `c1`; the first is older.
fn two() -> Claims {
    let mut claims = Claims::default();
    claims.put(object("b/young"), claim("c1", "2", "02"));
    claims.put(object("z/old"), claim("c1", "9", "01"));
    claims
}

#[test]
fn the_first_has_the_name_and_the_others_are_told() {
    let (claims, old, young) = (two(), object("z/old"), object("b/young"));
    let verdict = claims.judge("c1", &Holder::Nobody);
    assert_eq!(
        verdict,
        Verdict { step: Step::Write(old.clone()), owner: Some(old.clone()), losers: vec![young.clone()] }
    );
    let mut same_moment = Claims::default();
    same_moment.put(object("a"), claim("c1", "2", "01"));
    same_moment.put(object("b"), claim("c1", "1", "01"));
    assert_eq!(same_moment.judge("c1", &Holder::Nobody).step, Step::Write(object("b")), "by uid");
}

#[test]
fn who_has_it_keeps_it_though_somebody_older_comes() {
    let (claims, old) = (two(), object("z/old"));
    let young = object("b/young");
    let verdict = claims.judge("c1", &holder("b/young", "2", "h", false));
    assert_eq!(verdict, Verdict { step: Step::Keep, owner: Some(young.clone()), losers: vec![old.clone()] });
}

#[test]
fn a_persons_secret_is_never_touched() {
    let claims = two();
    let verdict = claims.judge("c1", &Holder::Person);
    assert_eq!((verdict.step, verdict.losers.len()), (Step::Keep, 2));
    assert_eq!(Claims::default().judge("c1", &Holder::Person).step, Step::Keep);
}

#[test]
fn an_owner_that_does_not_show_is_waited_for_and_one_that_is_gone_is_followed() {
    let (mut claims, old) = (two(), object("z/old"));
    assert_eq!(claims.remove(&object("b/young")), ["c1"]);
    let verdict = claims.judge("c1", &holder("b/young", "2", "h", false));
    assert_eq!(
        verdict,
        Verdict { step: Step::Wait, owner: None, losers: vec![old.clone()] },
        "after a restart, for example"
    );
    let verdict = claims.judge("c1", &holder("b/young", "2", "h", true));
    assert_eq!(verdict, Verdict { step: Step::Write(old.clone()), owner: Some(old.clone()), losers: vec![] });
    claims.remove(&old);
    assert_eq!(claims.judge("c1", &holder("b/young", "2", "h", true)).step, Step::Remove);
    assert_eq!(claims.judge("c1", &holder("b/young", "2", "h", false)).step, Step::Wait);
    assert_eq!(claims.judge("c1", &Holder::Nobody).step, Step::Keep);
}

#[test]
fn only_a_difference_is_written() {
    let mut claims = Claims::default();
    let one = object("a/one");
    assert_eq!(claims.put(one.clone(), claim("c1", "1", "01")), ["c1"]);
    assert!(claims.put(one.clone(), claim("c1", "1", "01")).is_empty(), "the same again");
    let judge = |claims: &Claims, holder: &Holder| match claims.judge("c1", holder).step {
        Step::Write(object) => Some(object),
        _ => None,
    };
    assert_eq!(judge(&claims, &holder("a/one", "1", "h", false)), None);
    assert_eq!(judge(&claims, &holder("a/one", "1", "other", false)), Some(one.clone()), "another credential");
    assert_eq!(judge(&claims, &holder("a/one", "0", "h", false)), Some(one.clone()), "made anew");
    claims.put(one.clone(), Claim { wish: Wish::Paused, ..claim("c1", "1", "01") });
    assert_eq!(judge(&claims, &holder("a/one", "1", "other", false)), None, "paused");
    claims.put(one.clone(), Claim { wish: Wish::Refused, ..claim("c1", "1", "01") });
    assert_eq!(claims.judge("c1", &holder("a/one", "1", "other", false)).step, Step::Refuse(one.clone()));
}

#[test]
fn an_object_that_another_source_reads_goes_on() {
    let mut claims = two();
    let other = Object { source: "capi", ..object("z/old") };
    claims.remove(&object("z/old"));
    claims.put(other.clone(), claim("c1", "9", "01"));
    claims.put(object("a/first"), claim("c1", "1", "00"));
    assert_eq!(claims.judge("c1", &holder("z/old", "9", "h", false)).step, Step::Write(other.clone()));
}

#[test]
fn another_name_leaves_the_old_one() {
    let mut claims = Claims::default();
    claims.put(object("a/one"), claim("c1", "1", "01"));
    assert_eq!(claims.put(object("a/one"), claim("c2", "1", "01")), ["c1", "c2"]);
    assert_eq!(claims.judge("c1", &Holder::Nobody).step, Step::Keep);
    assert_eq!(claims.judge("c2", &Holder::Nobody).step, Step::Write(object("a/one")));
}

proptest! {
    /// In any order of events: a name has one owner, the other claimants learn of it, and no Secret
    /// of an object that may live is taken from it.
    #[test]
    fn one_name_one_owner(
        seen in proptest::collection::vec((0..5_u8, 0..3_u8, 0..4_u8, any::<bool>()), 0..24),
        held in 0..7_u8,
        is_gone in any::<bool>(),
    ) {
        let mut claims = Claims::default();
        for (who, name, created, is_there) in seen {
            let object = object(&who.to_string());
            if is_there {
                let claim = claim(&format!("c{name}"), &who.to_string(), &format!("0{created}"));
                claims.put(object, claim);
            } else {
                claims.remove(&object);
            }
        }
        let holder = match held {
            0 => Holder::Nobody,
            1 => Holder::Person,
            who => holder(&(who - 2).to_string(), &(who - 2).to_string(), "h", is_gone),
        };
        for name in ["c0", "c1", "c2"] {
            let verdict = claims.judge(name, &holder);
            let claimants = claims.objects().filter(|(_, claim)| claim.name == name).count();
            let owners = claimants - verdict.losers.len();
            prop_assert!(owners <= 1);
            if let Holder::Object { object, is_gone: false, .. } = &holder {
                let lives = matches!(&verdict.step, Step::Keep | Step::Wait)
                    || matches!(&verdict.step, Step::Write(owner) if owner == object);
                prop_assert!(lives, "{verdict:?}");
            }
            prop_assert!(holder != Holder::Person || verdict.step == Step::Keep);
        }
    }
}

#[test]
fn what_was_only_seen_wants_what_it_wanted_before() {
    let mut claims = Claims::default();
    let one = object("a/one");
    assert_eq!(claims.see(one.clone(), "c1", "1", "2026-11-24T10:00:01Z"), ["c1"]);
    assert_eq!(claims.judge("c1", &Holder::Nobody).step, Step::Keep, "nobody has read it");
    claims.put(one.clone(), claim("c1", "1", "01"));
    assert!(claims.see(one.clone(), "c1", "1", &claim("c1", "1", "01").created).is_empty());
    assert_eq!(claims.judge("c1", &Holder::Nobody).step, Step::Write(one.clone()));
    claims.see(one.clone(), "c1", "2", "2026-11-24T10:00:03Z");
    assert_eq!(claims.judge("c1", &Holder::Nobody).step, Step::Keep, "another object of the same name");
}

#[test]
fn a_reference_leads_back_to_the_object() {
    let object = Object::new("capi", ["cluster.x-k8s.io", "Cluster"], "fleet", "c1");
    assert_eq!((object.reference.as_str(), object.key()), ("cluster.x-k8s.io/Cluster/fleet/c1", ("fleet", "c1")));
    assert_eq!(Object::new("kubeconfig", ["", "Secret"], "fleet", "c1").reference, "core/Secret/fleet/c1");
    let cluster_scoped = Object::new("karmada", ["cluster.karmada.io", "Cluster"], "", "c1");
    assert_eq!(
        (cluster_scoped.reference.as_str(), cluster_scoped.key()),
        ("cluster.karmada.io/Cluster//c1", ("", "c1"))
    );
}

#[test]
fn whoever_waits_for_a_name_does_not_keep_what_is_gone() {
    for wish in [Wish::Waiting, Wish::Paused, Wish::Refused] {
        let (mut claims, next) = (Claims::default(), object("a/next"));
        claims.put(next.clone(), Claim { wish: wish.clone(), ..claim("c1", "2", "02") });
        let verdict = claims.judge("c1", &holder("b/gone", "1", "h", true));
        assert_eq!(verdict, Verdict { step: Step::Remove, owner: None, losers: vec![next.clone()] }, "{wish:?}");
        assert_eq!(claims.judge("c1", &holder("b/gone", "1", "h", false)).step, Step::Wait, "{wish:?}");
    }
}
