use api::secret::{ClusterEndpoint, ConstEndpoint, Credential, Endpoint, ExecConfig, ProxyUrl, Trust};
use secrecy::SecretSlice;

use super::*;

fn fixed(url: &str, proxy: Option<&str>) -> ClusterEndpoint {
    ClusterEndpoint::Const(ConstEndpoint {
        url: Endpoint::parse(url, false).unwrap(),
        proxy: proxy.map(|url| ProxyUrl::parse(url).unwrap()),
        fallbacks: Vec::new(),
    })
}

fn with_others(others: &[(&str, Trust)]) -> ClusterEndpoint {
    let other = |(url, trust): &(&str, Trust)| (Endpoint::parse(url, false).unwrap(), trust.clone());
    let url = Endpoint::parse("https://c1", false).unwrap();
    ClusterEndpoint::Const(ConstEndpoint { url, proxy: None, fallbacks: others.iter().map(other).collect() })
}

fn bundle(text: &str) -> Trust {
    Trust::Bundle(text.as_bytes().to_vec())
}

fn cluster() -> ClusterSecret {
    let mut cluster = ClusterSecret::new(fixed("https://c1", None), bundle("a"), Credential::Token("t".into()));
    cluster.labels = [("team".to_owned(), "a".to_owned())].into();
    cluster
}

fn x509(certificate: &str, key: &str) -> Credential {
    let private_key = SecretSlice::from(key.as_bytes().to_vec());
    Credential::X509 { certificate: certificate.as_bytes().to_vec(), private_key }
}

fn exec(argument: &str) -> Credential {
    let json = format!(
        r#"{{"apiVersion": "client.authentication.k8s.io/v1", "command": "c", "args": ["{argument}"],
            "env": [{{"name": "A", "value": "{argument}"}}]}}"#
    );
    Credential::Exec(ExecConfig::parse(json.as_bytes()).unwrap())
}

/// A change of a cluster.
type Change = fn(&mut ClusterSecret);

#[test]
fn any_change_changes_it() {
    let changes: [Change; 24] = [
        |_| {},
        |cluster| cluster.endpoint = fixed("https://c2", None),
        |cluster| cluster.endpoint = fixed("https://c1:6443", None),
        |cluster| cluster.endpoint = fixed("https://c1/base", None),
        |cluster| cluster.endpoint = fixed("https://c1", Some("http://proxy")),
        |cluster| cluster.endpoint = fixed("https://c1", Some("http://u:p@proxy")),
        |cluster| cluster.endpoint = fixed("https://c1", Some("http://u:q@proxy")),
        |cluster| cluster.endpoint = with_others(&[("https://c2", Trust::SystemRoots)]),
        |cluster| cluster.endpoint = with_others(&[("https://c2", bundle("a"))]),
        |cluster| cluster.endpoint = with_others(&[("https://c3", Trust::SystemRoots)]),
        |cluster| cluster.endpoint = ClusterEndpoint::ClusterProxy,
        |cluster| cluster.trust = bundle("b"),
        |cluster| cluster.trust = Trust::SystemRoots,
        |cluster| cluster.trust = Trust::Insecure,
        |cluster| cluster.tls_server_name = Some("a".into()),
        |cluster| cluster.credential = Credential::Token("u".into()),
        |cluster| cluster.credential = x509("a", "b"),
        |cluster| cluster.credential = x509("ab", ""),
        |cluster| cluster.credential = exec("a"),
        |cluster| cluster.credential = exec("b"),
        |cluster| cluster.labels.clear(),
        |cluster| cluster.labels = [("team".to_owned(), "b".to_owned())].into(),
        |cluster| cluster.labels = [("teama".to_owned(), String::new())].into(),
        |cluster| cluster.alias = Some("a".into()),
    ];
    let mut seen: Vec<String> = Vec::new();
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = cluster();
        change(&mut changed);
        let text = of(&changed, "u-1");
        assert!(!seen.contains(&text), "change {number} is another's");
        assert_eq!(text, of(&changed.clone(), "u-1"));
        seen.push(text);
    }
}

#[test]
fn annotations_are_told_from_each_other() {
    let texts = [
        |cluster: &mut ClusterSecret| cluster.alias = Some("a".into()),
        |cluster: &mut ClusterSecret| cluster.identity_rules = Some("a".into()),
        |cluster: &mut ClusterSecret| cluster.member_uid = Some("a".into()),
        |cluster: &mut ClusterSecret| cluster.member_account = Some("a".into()),
        |cluster: &mut ClusterSecret| cluster.agent_account = Some("a".into()),
    ]
    .map(|change| {
        let mut changed = cluster();
        change(&mut changed);
        of(&changed, "u-1")
    });
    let different: std::collections::BTreeSet<_> = texts.iter().collect();
    assert_eq!(different.len(), 5);
}

#[test]
fn two_objects_with_one_credential_are_not_told_by_it() {
    assert_ne!(of(&cluster(), "u-1"), of(&cluster(), "u-2"));
    assert_ne!(of(&cluster(), ""), of(&cluster(), "u-2"));
}

/// If the text differed from the last release's, every Secret would be rewritten.
#[test]
fn it_is_the_same_after_a_restart() {
    assert_eq!(of(&cluster(), "u-1"), "e16a9180e45c6d54eb543b8c05b2d0a1b057ff332341fb0202b7a723b3eef600");
}

#[test]
fn equal_content_has_an_equal_sum_by_one_key_and_by_no_other() {
    let sums = [Sums::default(), Sums::default()];
    let sum = |sums: &Sums, texts: &[&str]| {
        let mut sum = sums.begin().unwrap();
        for text in texts {
            sum.add(text.as_bytes());
        }
        sum.end()
    };
    let [one, other] = &sums;
    assert_eq!(sum(one, &["ab", "c"]), sum(one, &["ab", "c"]));
    for different in [&["a", "bc"][..], &["abc"], &["ab", "c", ""], &["ab"], &[]] {
        assert_ne!(sum(one, &["ab", "c"]), sum(one, different), "{different:?}");
    }
    assert_ne!(sum(one, &["ab"]), sum(other, &["ab"]));
}
