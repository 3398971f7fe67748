mod forge;
mod pairs;

use forge::{Forged, key};

use super::*;

fn usages(usages: &[&str]) -> Vec<String> {
    usages.iter().map(|usage| (*usage).to_owned()).collect()
}

/// An agent's request for `c1`, except for the forged parts.
fn recognize(forged: &Forged) -> Result<Recognized, Unrecognized> {
    let (pem, usages) = (forged.pem(), usages(&["digital signature", "key encipherment", "client auth"]));
    Request { signer: SIGNER, label: Some("c1"), pem: pem.as_bytes(), usages: &usages }.recognize()
}

fn organizations(names: &[&str]) -> Forged {
    Forged { organizations: names.iter().map(|name| (*name).to_owned()).collect(), ..Forged::default() }
}

fn common_name(name: &str) -> Forged {
    Forged { common_names: vec![name.to_owned()], ..Forged::default() }
}

#[test]
fn an_agents_request_is_recognized_in_each_form_that_agents_write() {
    let expected = Recognized { cluster: "c1".into(), agent: "agent-7".into() };
    let own = "system:open-cluster-management:c1";
    for forged in [
        Forged::default(),
        Forged { is_multi_valued: true, ..Forged::default() },
        Forged { attributes: Vec::new(), ..Forged::default() },
        organizations(&[own]),
        organizations(&[ALL_CLUSTERS, own]),
    ] {
        assert_eq!(recognize(&forged), Ok(expected.clone()), "{forged:?}");
    }
    let pem = format!("\n{}\n\n", Forged::default().pem());
    for all in [&["client auth", "digital signature"][..], &["digital signature", "client auth", OPTIONAL_USAGE]] {
        let usages = usages(all);
        let request = Request { signer: SIGNER, label: Some("c1"), pem: pem.as_bytes(), usages: &usages };
        assert_eq!(request.recognize(), Ok(expected.clone()), "{all:?}");
    }
}

#[test]
fn names_are_compared_whole() {
    let named = |cluster: &str, agent: &str| common_name(&format!("{PREFIX}{cluster}:{agent}"));
    for (forged, expected) in [
        // Prefixes of each other, both ways.
        (named("c10", "a"), Unrecognized::Organizations),
        (named("c", "a"), Unrecognized::Organizations),
        (organizations(&["system:open-cluster-management:c10"]), Unrecognized::Organizations),
        (organizations(&["system:open-cluster-management:c"]), Unrecognized::Organizations),
        (organizations(&["system:open-cluster-management:C1"]), Unrecognized::Organizations),
        (organizations(&[]), Unrecognized::Organizations),
        (organizations(&[ALL_CLUSTERS]), Unrecognized::Organizations),
        (
            organizations(&["system:open-cluster-management:c1", ALL_CLUSTERS, "system:masters"]),
            Unrecognized::Organizations,
        ),
        (organizations(&["system:open-cluster-management:c1", "system:masters"]), Unrecognized::Organizations),
        (organizations(&["system:open-cluster-management:c1"; 2]), Unrecognized::Organizations),
        (named("c1", ""), Unrecognized::CommonName),
        (named("", "a"), Unrecognized::CommonName),
        (named("c1", "a:b"), Unrecognized::CommonName),
        (named("c1", "a b"), Unrecognized::CommonName),
        (named("c1", "ä"), Unrecognized::CommonName),
        (named("c.1", "a"), Unrecognized::CommonName),
        (named("-c1", "a"), Unrecognized::CommonName),
        (common_name("system:open-cluster-management:c1"), Unrecognized::CommonName),
        (common_name("system:node:c1:a"), Unrecognized::CommonName),
        (common_name(" system:open-cluster-management:c1:a"), Unrecognized::CommonName),
    ] {
        assert_eq!(recognize(&forged), Err(expected), "{forged:?}");
    }
    let own = organizations(&[ALL_CLUSTERS]);
    let forged = Forged { common_names: vec![format!("{PREFIX}managed-clusters:a")], ..own };
    assert_eq!(recognize(&forged), Err(Unrecognized::Organizations), "the group of all is nobody's own");
}

#[test]
fn label_signer_and_usages_are_what_they_have_to_be() {
    let pem = Forged::default().pem();
    let good = usages(&REQUIRED_USAGES);
    let ask = |signer: &str, label: Option<&str>, usages: &[String]| {
        Request { signer, label, pem: pem.as_bytes(), usages }.recognize().map(drop)
    };
    assert_eq!(ask(SIGNER, Some("c1"), &good), Ok(()));
    for label in [None, Some(""), Some("c10"), Some("c"), Some("C1")] {
        assert_eq!(ask(SIGNER, label, &good), Err(Unrecognized::Label), "{label:?}");
    }
    for signer in ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet", ""] {
        assert_eq!(ask(signer, Some("c1"), &good), Err(Unrecognized::Signer), "{signer}");
    }
    for wrong in [
        &[][..],
        &["client auth"],
        &["digital signature"],
        &["digital signature", "client auth", "server auth"],
        &["digital signature", "client auth", "any"],
        &["digital signature", "digital signature"],
        &["digital signature", "client auth", "client auth"],
        &["key encipherment", "client auth"],
    ] {
        assert_eq!(ask(SIGNER, Some("c1"), &usages(wrong)), Err(Unrecognized::Usages), "{wrong:?}");
    }
}

#[test]
fn a_request_is_what_it_says_and_nothing_more() {
    let mistake = |mistake| Err(Unrecognized::Request(mistake));
    let san = forge::extension_request(&forge::alternative_name("c1"));
    let mut two = forge::extension_request(&[]);
    two.extend(forge::extension_request(&forge::alternative_name("c1")));
    for (forged, expected) in [
        (Forged { attributes: san, ..Forged::default() }, Mistake::Extensions),
        (Forged { attributes: two, ..Forged::default() }, Mistake::Extensions),
        (Forged { attributes: forge::two_values(), ..Forged::default() }, Mistake::Extensions),
        (Forged { attributes: forge::challenge_password(), ..Forged::default() }, Mistake::Extensions),
        (Forged { signs: Some(key()), ..Forged::default() }, Mistake::Signature),
        (Forged { is_sha1: true, ..Forged::default() }, Mistake::Signature),
        (Forged { is_rsa_1024: true, ..Forged::default() }, Mistake::Signature),
        (Forged { unit: Some("unit".into()), ..Forged::default() }, Mistake::Subject),
        (Forged { common_names: Vec::new(), ..Forged::default() }, Mistake::Subject),
        (
            Forged { common_names: vec![format!("{PREFIX}c1:a"), format!("{PREFIX}c2:a")], ..Forged::default() },
            Mistake::Subject,
        ),
        (Forged { trailing: vec![0], ..Forged::default() }, Mistake::Der),
    ] {
        assert_eq!(recognize(&forged), mistake(expected), "{forged:?}");
    }
}

#[test]
fn pem_is_one_block_alone() {
    let (one, usages) = (Forged::default().pem(), usages(&REQUIRED_USAGES));
    for pem in [
        format!("{one}{one}"),
        format!("{one}\nc1"),
        format!("c1\n{one}"),
        one.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"),
        one.replacen("REQUEST-----\n", "REQUEST-----\nProc-Type: 4,ENCRYPTED\n\n", 1),
        one.replace("-----END CERTIFICATE REQUEST-----", ""),
        " ".repeat(1 << 20) + &one,
        String::new(),
    ] {
        let request = Request { signer: SIGNER, label: Some("c1"), pem: pem.as_bytes(), usages: &usages };
        assert_eq!(request.recognize(), Err(Unrecognized::Request(Mistake::Pem)), "{pem:.300}");
    }
}

#[test]
fn who_asks_decides_what_may_be_done() {
    let recognized = Recognized { cluster: "c1".into(), agent: "a".into() };
    let trusted = vec!["system:serviceaccount:ocm:bootstrap".to_owned()];
    let judge = |user: &str, is_accepted| recognized.judge(Requester { user, is_accepted, trusted: &trusted });
    let itself = "system:open-cluster-management:c1:a";
    assert_eq!((judge(itself, true), judge(itself, false)), (Judgement::Renewal, Judgement::Person));
    for other in [
        "system:open-cluster-management:c1:b",
        "system:open-cluster-management:c10:a",
        "system:open-cluster-management:c2:a",
        "system:open-cluster-management:c1",
        "system:serviceaccount:ocm:bootstrap2",
        "",
    ] {
        assert_eq!((judge(other, true), judge(other, false)), (Judgement::Person, Judgement::Person), "{other}");
    }
    let boot = "system:serviceaccount:ocm:bootstrap";
    assert_eq!((judge(boot, false), judge(boot, true)), (Judgement::FirstJoin, Judgement::FirstJoin));
}
