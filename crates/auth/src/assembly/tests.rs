//! Tests of files in place of a hub: their contents, that changes are followed, and that invalid
//! ones stop the start.

use std::time::Duration;

use http::HeaderMap;
use kit::pki::{Authority, Leaf};
use tempfile::TempDir;
use tokio::time::sleep;

use super::*;
use crate::config::FrontProxyConfig;
use crate::testing::{headers, metrics, peer, strings};

/// Longer than the interval at which files are read again.
const NEXT_LOOK: Duration = Duration::from_secs(61);

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, contents).expect("written");
        path
    }
}

fn build(config: &Config) -> Result<Auth, BuildError> {
    Auth::build(config, None, &Handle::current(), &metrics())
}

async fn name(auth: &Auth, certificates: &Authority, leaf: &Leaf, mut lines: HeaderMap) -> Option<String> {
    let peer = peer(&certificates.issue(leaf).chain_der);
    auth.authenticator.authenticate(&peer, &mut lines).await.ok().map(|user| user.name.clone())
}

#[tokio::test(start_paused = true)]
async fn authorities_from_files_are_followed() {
    let (files, old, new) = (Files::new(), Authority::new("old"), Authority::new("new"));
    let config = Config {
        client_ca_file: Some(files.write("clients.crt", &old.certificate_pem())),
        front_proxy: FrontProxyConfig {
            ca_file: Some(files.write("proxies.crt", &old.certificate_pem())),
            allowed_names: strings(&["proxy"]),
            ..FrontProxyConfig::default()
        },
        ..Config::default()
    };
    let auth = build(&config).expect("valid");
    assert!(*auth.loaded.borrow(), "nothing to wait for");
    let line = || headers([("X-Remote-User", "alice"), ("X-Remote-Uid", "1")]);
    let (proxy, jane) = (Leaf::client("proxy"), Leaf::client("jane"));
    assert_eq!(name(&auth, &old, &proxy, line()).await.as_deref(), Some("alice"));
    assert_eq!(name(&auth, &old, &jane, line()).await.as_deref(), Some("jane"));
    assert_eq!(name(&auth, &new, &jane, line()).await, None);

    files.write("clients.crt", &new.certificate_pem());
    files.write("proxies.crt", "spoiled");
    sleep(NEXT_LOOK).await;
    assert_eq!(name(&auth, &new, &jane, line()).await.as_deref(), Some("jane"));
    assert_eq!(name(&auth, &old, &proxy, line()).await.as_deref(), Some("alice"), "the last good authority stays");
}

#[tokio::test(start_paused = true)]
async fn without_a_hub_tokens_and_rules_come_from_files_and_are_followed() {
    let files = Files::new();
    let mut config = Config::default();
    config.token.file = Some(files.write("tokens.csv", "secret,alice,1,developers"));
    let policy = "rules: [{groups: [developers], clusters: [blue], verbs: [get]}]";
    config.authorization.standalone_policy = Some(files.write("policy.yaml", policy));
    let auth = build(&config).expect("valid");
    let ask = async |token: &str, cluster: &str| {
        let mut lines = headers([("Authorization", format!("Bearer {token}").as_str())]);
        let user = auth.authenticator.authenticate(&peer(&[]), &mut lines).await.ok()?;
        Some(auth.authorizer.authorize(user, get(cluster)).await.is_ok())
    };
    assert_eq!(ask("secret", "blue").await, Some(true));
    assert_eq!(ask("secret", "green").await, Some(false));
    assert_eq!(ask("other", "blue").await, None);

    files.write("tokens.csv", "other,alice,1,developers");
    files.write("policy.yaml", &policy.replace("blue", "green"));
    sleep(NEXT_LOOK).await;
    assert_eq!(ask("secret", "blue").await, None);
    assert_eq!(ask("other", "blue").await, Some(false));
    assert_eq!(ask("other", "green").await, Some(true));
}

fn get(cluster: &str) -> api::access::Attributes {
    api::access::Attributes::Resource(api::access::ResourceAttributes {
        verb: api::access::Verb::Get,
        group: api::GROUP.into(),
        version: api::VERSION.into(),
        resource: "clustergateways".into(),
        subresource: "proxy".into(),
        namespace: None,
        name: Some(cluster.into()),
        field_selector: None,
        label_selector: None,
    })
}

#[tokio::test]
async fn a_setting_that_does_not_work_stops_the_start_and_names_its_file() {
    let files = Files::new();
    let bad = files.write("bad", "{");
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        build(&config).expect_err("refused").to_string()
    };
    for complaint in [
        with(&|config| config.client_ca_file = Some(bad.clone())),
        with(&|config| config.front_proxy.ca_file = Some(bad.clone())),
        with(&|config| config.token.file = Some(bad.clone())),
        with(&|config| config.authorization.standalone_policy = Some(bad.clone())),
    ] {
        assert!(complaint.starts_with(&format!("{}: ", bad.display())), "{complaint}");
    }
    let missing = with(&|config| config.token.file = Some(files.0.path().join("missing")));
    assert!(missing.starts_with("cannot read "), "{missing}");
    let path = with(&|config| config.authorization.always_allow_paths = strings(&["/a*b"]));
    assert!(path.contains("/a*b"), "{path}");
}
