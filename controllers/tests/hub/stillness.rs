//! What exists already is not written again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use hub_tests::http::Kept;
use hub_tests::product::Product;
use hub_tests::testbed::Testbed;
use hub_tests::{size, wait};
use kit::member::{FakeMember, MemberOptions, Reply};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::fixture::{
    Fixture, Running, SOON, apply, kubeconfig, kubeconfig_secret, member_kubeconfig, namespace, print, secret_field,
    test, versions, wait_secret,
};
use crate::program::Program;

/// The number in the gate. The promise is for `TEST_SOURCES=1000`.
const SOURCES: usize = 100;
const FLEET: &str = "many-fleet";
const CLUSTERS: &str = "many-clusters";
const WRITES: &str = "cluster_gateway_controllers_secret_writes_total";
const OBJECTS: &str = "cluster_gateway_controllers_source_objects";
/// Time for another replica to lead after a leader was killed.
const TAKE_OVER: Duration = Duration::from_secs(20);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "stillness: no change, no write", stillness),
        test(fixture, "stillness: many rewritten, and a leader killed, are no connection at members", many),
    ]
}

/// Clusters that all lead to one member, which counts the connections that it accepts.
struct Crowd<'t> {
    testbed: &'t Testbed,
    size: usize,
    gateway: Product,
    member: FakeMember,
    /// The member's runtime.
    _runtime: Runtime,
}

fn stillness(testbed: &Testbed) -> Result<()> {
    let fleet = "still-fleet";
    let kubeconfig = member_kubeconfig(testbed, "token");
    let source = kubeconfig_secret(fleet, "still", &kubeconfig);
    apply(testbed, &[namespace(fleet), source.clone()])?;
    let flags = ["--enable=kubeconfig", "--watch-namespaces=still-fleet"];
    let mut controllers = Running::start(testbed, "still-clusters", &flags)?;
    wait_secret(testbed, &controllers.namespace, "still")?;
    testbed.hub.server.label("secret still -n still-clusters owner=somebody")?;
    let version = || secret_field(testbed, "still-clusters", "still", "/metadata/resourceVersion");
    let before = version()?;
    testbed.hub.server.annotate("secret still -n still-fleet touched=yes")?;
    controllers.restart()?;
    controllers.wait_state("still-fleet/still", "registered")?;
    let writes = controllers.metric("cluster_gateway_controllers_secret_writes_total", "")?;
    ensure!(writes == 0.0 && version()? == before, "{writes} writes of what was there");
    // A changed credential is written, and a label of a person stays.
    apply(testbed, &[kubeconfig_secret(fleet, "still", &member_kubeconfig(testbed, "other"))])?;
    wait::until_true("the change", SOON, || Ok(version()? != before))?;
    let label = secret_field(testbed, "still-clusters", "still", "/metadata/labels/owner")?;
    ensure!(label == "somebody", "a person's label is gone");
    // Deleted by hand, the Secret is restored: its source still exists.
    testbed.hub.server.delete("secret still -n still-clusters")?;
    wait_secret(testbed, "still-clusters", "still")
}

fn many(testbed: &Testbed) -> Result<()> {
    let crowd = Crowd::start(testbed)?;
    apply(testbed, &[namespace(FLEET), namespace(CLUSTERS)])?;
    let all: Vec<_> = (0..crowd.size).map(|number| crowd.source(number)).collect();
    apply(testbed, &all)?;
    let mut first = crowd.program("many-first")?;
    first.wait_to_say("leading")?;
    crowd.wait_registered(&first)?;
    let mut second = crowd.program("many-second")?;
    second.wait_to_say("another leads")?;
    // On one connection, because each core of a gateway has its own connections to members.
    let mut caller = crowd.gateway.client(None).keep()?;
    crowd.ask_all(&mut caller)?;
    let connections = crowd.member.connections_accepted();
    ensure!(connections >= crowd.size, "{connections} connections for {} clusters", crowd.size);
    let (before, written) = (crowd.versions()?, first.metric(WRITES, "")?);

    // All sources are rewritten with the same content. Their clusters are asked on the way, because
    // the gateway closes a caller's connection on which nothing comes for two minutes.
    for (number, source) in all.iter().enumerate() {
        let mut rewritten = source.clone();
        rewritten["metadata"]["annotations"] = json!({"touched": number.to_string()});
        rewritten["stringData"]["kubeconfig"] =
            format!("{}\n", source["stringData"]["kubeconfig"].as_str().context("it")?).into();
        apply(testbed, &[rewritten])?;
        crowd.ask(&mut caller, number)?;
    }
    // The last one is new: the others have been processed by then.
    apply(testbed, &[crowd.called("zz-last")])?;
    wait_secret(testbed, CLUSTERS, "zz-last")?;
    // A write is counted when it is answered, which may be later than its object is seen.
    let mut more = 0.0;
    wait::until_true("the new one to count", SOON, || {
        more = first.metric(WRITES, "")? - written;
        Ok(more > 0.5)
    })?;
    ensure!((more - 1.0).abs() < 0.5, "{more} writes, of which one is new");

    first.process.signal("KILL")?;
    let killed = tokio::time::Instant::now();
    wait::until_true("the second to lead", TAKE_OVER, || Ok(second.log()?.contains("leading")))?;
    print(&format!("{} sources: another leads {:?} after the leader's death", crowd.size, killed.elapsed()));
    crowd.wait_registered(&second)?;
    ensure!(second.metric(WRITES, "")? < 0.5, "another leader wrote what was there");
    let mut after = crowd.versions()?;
    after.retain(|version| !version.contains("/zz-last="));
    ensure!(after == before, "written again: {before:?} {after:?}");
    crowd.ask_all(&mut caller)?;
    let now = crowd.member.connections_accepted();
    ensure!(now == connections, "{} connections that nothing was the reason of", now - connections);
    // A change is counted as one more write, which shows that the count works.
    apply(testbed, &[crowd.with(0, "another")])?;
    second.process.check()?;
    wait::until_true("the change", SOON, || Ok(second.metric(WRITES, "")? > 0.5))
}

// === impl Crowd ===

impl<'t> Crowd<'t> {
    fn start(testbed: &'t Testbed) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let member = runtime.block_on(FakeMember::start(MemberOptions::default()));
        member.on_any(|_| Reply::json(200, &json!({"kind": "Status", "status": "Success"})));
        // A separate gateway: controllers of other tests write where the testbed's reads. It probes
        // no members.
        let flags = [&format!("--secret-namespace={CLUSTERS}"), "--feature-gates=HealthinessCheck=false"];
        let hub = testbed.hub.server.kubectl().kubeconfig;
        let gateway = testbed.start_gateway("many-gateway", &hub, &flags)?;
        Ok(Self { testbed, size: size::of("TEST_SOURCES", SOURCES)?, gateway, member, _runtime: runtime })
    }

    fn program(&self, name: &str) -> Result<Program> {
        let watched = format!("--watch-namespaces={FLEET}");
        Program::with_account(self.testbed, name, CLUSTERS, &["--enable=kubeconfig", &watched])
    }

    fn source(&self, number: usize) -> Value {
        self.with(number, "token")
    }

    fn with(&self, number: usize, token: &str) -> Value {
        self.secret(&format!("many-{number}"), token)
    }

    fn called(&self, name: &str) -> Value {
        self.secret(name, "token")
    }

    fn secret(&self, name: &str, token: &str) -> Value {
        let of = kubeconfig(&self.member.url(), self.member.ca_pem().as_bytes(), &json!({"token": token}));
        kubeconfig_secret(FLEET, name, &of)
    }

    fn wait_registered(&self, program: &Program) -> Result<()> {
        // As many times longer as there are more of them than in the gate.
        let patience = 3 * SOON * u32::try_from(self.size.div_ceil(SOURCES))?;
        wait::until("all to be registered", patience, || {
            let registered = program.metric(OBJECTS, "state=\"registered\"")?;
            ensure!(registered + 0.5 > f64::from(u32::try_from(self.size)?), "{registered}");
            Ok(())
        })
    }

    fn versions(&self) -> Result<Vec<String>> {
        versions(&self.testbed.hub.server, &format!("secrets -n {CLUSTERS}"))
    }

    /// Sends a request to each cluster, one after the other.
    fn ask_all(&self, caller: &mut Kept) -> Result<()> {
        (0..self.size).try_for_each(|number| self.ask(caller, number))
    }

    fn ask(&self, caller: &mut Kept, number: usize) -> Result<()> {
        let token = format!("Bearer {}", self.testbed.token);
        let path = format!("{}/version", Testbed::proxy_path(&format!("many-{number}")));
        wait::until("an answer", SOON, || {
            let answer = caller.send(&Method::GET, &path, &[("authorization", &token)], Vec::new().into())?;
            answer.expect(StatusCode::OK)
        })
        .map(drop)
    }
}
