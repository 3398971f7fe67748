//! Rules about the identities that members see: the operator's file, the annotations of Secrets,
//! and their changes at run time.

use std::path::PathBuf;

use gateway::Gateway;
use kit::member::Recorded;
use kit::wait::{WAIT, becomes, within};
use system_tests::{Answer, Connection, Http, cluster, proxied};
use tempfile::TempDir;

use super::{Fixture, PATH, acted_as, lines, target};

const GATE: &str = "--feature-gates=APIPriorityAndFairness=false,ClientIdentityPenetration=true";
const ANNOTATION: &str = "cluster.core.oam.dev/cluster-gateway-proxy-configuration";
/// The file that KubeVela's chart ships.
const KUBEVELA: &str = "apiVersion: cluster.core.oam.dev/v1alpha1
kind: ClusterGatewayProxyConfiguration
spec:
  clientIdentityExchanger:
    rules:
      - name: super-user
        source:
          group: kubevela:ux
        type: PrivilegedIdentityExchanger
";

/// A file of rules.
struct RulesFile(TempDir);

// === impl RulesFile ===

impl RulesFile {
    fn new(rules: &str) -> Self {
        let file = Self(tempfile::tempdir().expect("a temporary directory"));
        file.write(rules);
        file
    }

    /// In one step: no reader gets half of it.
    fn write(&self, rules: &str) {
        let new = self.0.path().join("new");
        std::fs::write(&new, rules)
            .and_then(|()| std::fs::rename(&new, self.path()))
            .expect("the directory is writable");
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("config.yaml")
    }

    fn argument(&self) -> String {
        format!("--cluster-gateway-proxy-config={}", self.path().display())
    }
}

/// A configuration that maps every member of `group` to `user`.
fn mapping(group: &str, user: &str) -> String {
    format!(
        "spec: {{clientIdentityExchanger: {{rules: [{{name: map, type: StaticMappingIdentityExchanger, \
         source: {{group: {group}}}, target: {{user: {user}, groups: [mapped], uid: u-9}}}}]}}}}"
    )
}

impl Fixture {
    /// One request that the aggregator brings for `user` in `group`, as the member sees it.
    async fn seen_of(&self, connection: &mut Connection, user: &str, group: &str) -> Recorded {
        let identity = [("X-Remote-User", user), ("X-Remote-Group", group)];
        let answer = connection.call("GET", &target(), &identity, b"").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.member.next_request().await
    }

    /// The first answer about a new cluster to the aggregator, which brings jane of the group dev.
    async fn known_to_jane(&self, cluster: &str) -> Answer {
        let connection = self.front_proxy(Http::H2).await;
        let mut jane = connection.with("x-remote-user", "jane").with("x-remote-group", "dev");
        jane.until(WAIT, &proxied(cluster, PATH), |answer| answer.status != 404).await
    }
}

#[tokio::test]
async fn kubevelas_rule_lets_its_ux_act_as_the_registered_credential() {
    let file = RulesFile::new(KUBEVELA);
    let fixture = Fixture::with(Http::H2, &[GATE, &file.argument()]).await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(Http::H2).await;
    let request = fixture.seen_of(&mut connection, "admin", "kubevela:ux").await;
    assert_eq!(acted_as(&request), []);
    assert!(request.header("authorization").is_some());
    let request = fixture.seen_of(&mut connection, "jane", "dev").await;
    assert_eq!(acted_as(&request), lines(&[("user", "jane"), ("group", "dev"), ("group", "system:authenticated")]));
}

#[tokio::test]
async fn a_clusters_own_rules_come_first_and_concern_no_other_cluster() {
    let file = RulesFile::new(&mapping("dev", "by-file"));
    let fixture = Fixture::with(Http::H2, &[GATE, &file.argument()]).await;
    fixture.hub.allow_all();
    let annotated = cluster("c2", &fixture.member).annotation(ANNOTATION, &mapping("dev", "by-secret"));
    fixture.hub.put_secret(annotated);
    fixture.known_to_jane("c2").await;
    let mut connection = fixture.front_proxy(Http::H2).await;
    let mapped = |user| lines(&[("user", user), ("group", "mapped"), ("uid", "u-9")]);
    assert_eq!(acted_as(&fixture.member.next_request().await), mapped("by-secret"));
    assert_eq!(acted_as(&fixture.seen_of(&mut connection, "jane", "dev").await), mapped("by-file"));
    let request = fixture.seen_of(&mut connection, "joe", "ops").await;
    assert_eq!(acted_as(&request)[0], ("user".to_owned(), "joe".to_owned()));
}

#[tokio::test]
async fn the_file_is_followed_and_a_wrong_one_changes_nothing() {
    let file = RulesFile::new(&mapping("dev", "first"));
    let fixture = Fixture::with(Http::H2, &[GATE, &file.argument()]).await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(Http::H2).await;
    let mut user = async || acted_as(&fixture.seen_of(&mut connection, "jane", "dev").await)[0].1.clone();
    assert_eq!(user().await, "first");
    file.write(&mapping("dev", "second"));
    becomes(WAIT, "the changed rules", async || user().await == "second").await;

    file.write(
        "spec: {clientIdentityExchanger: {rules: [{type: PrivilegedIdentityExchanger, source: {userPattern: '('}}]}}",
    );
    let mut scrape = fixture.front_proxy(Http::H2).await.with("x-remote-user", "prometheus");
    becomes(WAIT, "the notice of the broken file", async || {
        scrape.get("/metrics").await.text().contains("cluster_gateway_identity_rules_current 0")
    })
    .await;
    assert_eq!(user().await, "second");
}

#[tokio::test]
async fn a_wrong_annotation_closes_its_own_cluster_only() {
    let fixture = Fixture::with(Http::H2, &[GATE]).await;
    fixture.hub.allow_all();
    let mut connection = fixture.front_proxy(Http::H2).await.with("x-remote-user", "jane");
    let wrong = mapping("dev", "x").replace("group: dev", "userPattern: '('");
    fixture.hub.put_secret(cluster("c2", &fixture.member).annotation(ANNOTATION, &wrong));
    let there = proxied("c2", PATH);
    let refused = connection.until(WAIT, &there, |answer| answer.status != 404).await;
    let message = refused.status_message(503, "ServiceUnavailable");
    for part in ["cluster c2", ANNOTATION, "rule 1 (\"map\")", "userPattern"] {
        assert!(message.contains(part), "{part} missing in: {message}");
    }
    assert_eq!(fixture.member.request_count(), 0);
    assert_eq!(connection.get(&target()).await.status, 200, "the other cluster is untouched");

    fixture.hub.put_secret(cluster("c2", &fixture.member));
    connection.until(WAIT, &there, |answer| answer.status == 200).await;
}

/// Rules by which an annotation would hand out more than its author may have, and the lines that
/// would show it.
fn elevating() -> [(String, Vec<(String, String)>); 3] {
    let mapped = mapping("dev", "deployer");
    let [masters, manager] = ["system:masters", "system:kube-controller-manager"];
    [
        (KUBEVELA.replace("kubevela:ux", "dev"), Vec::new()),
        (
            mapped.replace("[mapped]", "['system:masters']"),
            lines(&[("user", "deployer"), ("group", masters), ("uid", "u-9")]),
        ),
        (
            mapped.replace("user: deployer", "user: 'system:kube-controller-manager'"),
            lines(&[("user", manager), ("group", "mapped"), ("uid", "u-9")]),
        ),
    ]
}

#[tokio::test]
async fn writing_a_secret_does_not_make_anybody_privileged() {
    let jane = lines(&[("user", "jane"), ("group", "dev"), ("group", "system:authenticated")]);
    for (argument, is_allowed) in
        [("--allow-privileged-annotations=false", false), ("--allow-privileged-annotations", true)]
    {
        let fixture = Fixture::with(Http::H2, &[GATE, argument]).await;
        fixture.hub.allow_all();
        for (number, (rules, elevated)) in elevating().into_iter().enumerate() {
            let name = format!("annotated-{number}");
            fixture.hub.put_secret(cluster(&name, &fixture.member).annotation(ANNOTATION, &rules));
            fixture.known_to_jane(&name).await;
            let expected = if is_allowed { &elevated } else { &jane };
            assert_eq!(acted_as(&fixture.member.next_request().await), *expected, "{argument}: {rules}");
        }
    }
}

#[tokio::test]
async fn without_the_gate_annotations_mean_nothing_and_nobody_is_exchanged() {
    let file = RulesFile::new(&mapping("dev", "by-file"));
    let fixture = Fixture::with(Http::H2, &["--feature-gates=ClientIdentityPenetration=false", &file.argument()]).await;
    fixture.hub.allow_all();
    fixture.hub.put_secret(cluster("c2", &fixture.member).annotation(ANNOTATION, "nonsense: ["));
    let mut connection = fixture.front_proxy(Http::H2).await;
    assert_eq!(acted_as(&fixture.seen_of(&mut connection, "jane", "dev").await), []);
    assert_eq!(fixture.known_to_jane("c2").await.status, 200);
    assert_eq!(acted_as(&fixture.member.next_request().await), []);
    // The operator's rules hold for callers that ask for impersonation.
    let identity = [("X-Remote-User", "jane"), ("X-Remote-Group", "dev")];
    let asking = format!("{}?impersonate=true", target());
    assert_eq!(connection.call("GET", &asking, &identity, b"").await.status, 200);
    assert_eq!(acted_as(&fixture.member.next_request().await)[0], ("user".to_owned(), "by-file".to_owned()));
}

#[tokio::test]
async fn a_wrong_file_stops_the_start_with_all_that_is_wrong() {
    let wrong = "spec: {clientIdentityExchanger: {rules: [{name: one, type: Privileged, source: {}}, \
                 {name: two, type: PrivilegedIdentityExchanger, source: {groupPattern: '['}}]}}";
    let (file, directory) = (RulesFile::new(wrong), tempfile::tempdir().unwrap());
    let arguments = [
        "cluster-gateway".to_owned(),
        "--standalone".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--secure-port=0".to_owned(),
        format!("--clusters-dir={}", directory.path().display()),
        format!("--cert-dir={}", directory.path().display()),
        file.argument(),
    ];
    let started =
        tokio::task::spawn_blocking(move || Gateway::start(arguments).err().map(|error| format!("{error:#}")));
    let error = within(WAIT, "the start", started).await.unwrap().expect("the gateway does not start");
    for part in
        ["--cluster-gateway-proxy-config", "config.yaml", "rule 1 (\"one\"): type", "rule 2 (\"two\"): groupPattern"]
    {
        assert_eq!(error.matches(part).count(), 1, "{part} in: {error}");
    }
}
