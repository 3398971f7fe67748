//! Every single fault, and every pair of faults in one request: no fault repairs another.

use super::forge::{self, Forged, key};
use super::*;

/// A valid request of the agent of `c1`, until a fault is added.
struct Asked {
    signer: &'static str,
    label: Option<&'static str>,
    usages: Vec<&'static str>,
    forged: Forged,
    /// A change to the PEM.
    wrap: fn(String) -> String,
}

type Fault = (&'static str, fn(&mut Asked));

/// Several faults for most fields: of two in the same field, the second remains.
const FAULTS: [Fault; 38] = [
    ("no label", |it| it.label = None),
    ("an empty label", |it| it.label = Some("")),
    ("the label goes on", |it| it.label = Some("c10")),
    ("the label ends before", |it| it.label = Some("c")),
    ("another label", |it| it.label = Some("c2")),
    ("the signer of servers", |it| it.signer = "kubernetes.io/kubelet-serving"),
    ("the signer of kubelets", |it| it.signer = "kubernetes.io/kube-apiserver-client-kubelet"),
    ("no signer", |it| it.signer = ""),
    ("no usages", |it| it.usages.clear()),
    ("for servers too", |it| it.usages.push("server auth")),
    ("for anything", |it| it.usages.push("any")),
    ("not for clients", |it| it.usages.retain(|usage| *usage != "client auth")),
    ("not to sign", |it| it.usages.retain(|usage| *usage != "digital signature")),
    ("the name goes on", |it| it.common_name("system:open-cluster-management:c10:agent")),
    ("the name ends before", |it| it.common_name("system:open-cluster-management:c:agent")),
    ("another's name", |it| it.common_name("system:open-cluster-management:c2:agent")),
    ("no agent", |it| it.common_name("system:open-cluster-management:c1:")),
    ("no cluster", |it| it.common_name("system:open-cluster-management::agent")),
    ("three parts", |it| it.common_name("system:open-cluster-management:c1:agent:x")),
    ("one part", |it| it.common_name("system:open-cluster-management:c1")),
    ("a node's name", |it| it.common_name("system:node:c1")),
    ("an add-on's name", |it| it.common_name("system:open-cluster-management:cluster:c1:addon:a:agent:b")),
    ("no name", |it| it.forged.common_names.clear()),
    ("a second name", |it| it.forged.common_names.push(format!("{PREFIX}c2:agent"))),
    ("the organization goes on", |it| it.organization("system:open-cluster-management:c10")),
    ("the organization ends before", |it| it.organization("system:open-cluster-management:c")),
    ("another's organization", |it| it.organization("system:open-cluster-management:c2")),
    ("masters", |it| it.forged.organizations.push("system:masters".to_owned())),
    ("another's organization too", |it| it.forged.organizations.push(format!("{PREFIX}c2"))),
    ("no organization", |it| it.forged.organizations.clear()),
    ("a unit", |it| it.forged.unit = Some("unit".to_owned())),
    ("a further name", |it| it.forged.attributes = forge::extension_request(&forge::alternative_name("c1"))),
    ("a password", |it| it.forged.attributes = forge::challenge_password()),
    ("another's signature", |it| it.forged.signs = Some(key())),
    ("SHA-1", |it| it.forged.is_sha1 = true),
    ("something behind it", |it| it.forged.trailing = vec![0]),
    ("two blocks", |it| it.wrap = |pem| format!("{pem}{pem}")),
    ("words behind it", |it| it.wrap = |pem| pem + "c1"),
];

// === impl Asked ===

impl Asked {
    fn good() -> Self {
        let usages = vec!["digital signature", "key encipherment", "client auth"];
        Self { signer: SIGNER, label: Some("c1"), usages, forged: Forged::default(), wrap: |pem| pem }
    }

    fn common_name(&mut self, name: &str) {
        self.forged.common_names = vec![name.to_owned()];
    }

    fn organization(&mut self, name: &str) {
        self.forged.organizations = vec![name.to_owned(), ALL_CLUSTERS.to_owned()];
    }

    fn recognize(&self) -> Result<Recognized, Unrecognized> {
        let (pem, usages) = ((self.wrap)(self.forged.pem()), usages(&self.usages));
        Request { signer: self.signer, label: self.label, pem: pem.as_bytes(), usages: &usages }.recognize()
    }
}

#[test]
fn no_two_faults_make_each_other_good() {
    assert!(Asked::good().recognize().is_ok());
    for (number, (first, spoil)) in FAULTS.iter().enumerate() {
        let mut asked = Asked::good();
        spoil(&mut asked);
        assert!(asked.recognize().is_err(), "{first}");
        // Also in the other order: of two faults in one field, the later one remains.
        for (_, (second, spoil_more)) in FAULTS.iter().enumerate().filter(|(other, _)| *other != number) {
            let mut asked = Asked::good();
            spoil(&mut asked);
            spoil_more(&mut asked);
            let recognized = asked.recognize();
            assert!(recognized.is_err(), "{first}, and {second}: {recognized:?}");
        }
    }
}

#[test]
fn all_of_another_cluster_is_that_clusters_and_a_part_is_nobodys() {
    let of_another: [fn(&mut Asked); 3] = [
        |it| it.label = Some("c10"),
        |it| it.common_name("system:open-cluster-management:c10:agent"),
        |it| it.organization("system:open-cluster-management:c10"),
    ];
    for chosen in 0_u8..8 {
        let mut asked = Asked::good();
        of_another.iter().enumerate().filter(|(bit, _)| chosen & (1 << bit) != 0).for_each(|(_, it)| it(&mut asked));
        let cluster = asked.recognize().map(|recognized| recognized.cluster);
        match chosen {
            0 => assert_eq!(cluster.as_deref(), Ok("c1")),
            7 => assert_eq!(cluster.as_deref(), Ok("c10")),
            _ => assert!(cluster.is_err(), "{chosen:b}: {cluster:?}"),
        }
    }
}

/// As `openssl req` writes it: valid in everything except the key.
#[test]
fn an_rsa_key_has_2048_bits_or_more() {
    let usages = usages(&REQUIRED_USAGES);
    let recognize = |pem: &str| {
        Request { signer: SIGNER, label: Some("c1"), pem: pem.as_bytes(), usages: &usages }
            .recognize()
            .map(|it| it.agent)
    };
    assert_eq!(recognize(include_str!("rsa_2048.pem")).as_deref(), Ok("agent"));
    assert_eq!(recognize(include_str!("rsa_1024.pem")), Err(Unrecognized::Request(Mistake::Signature)));
}
