//! `dashboard`: the page and its events, as a browser gets them.

mod granted;
mod http;

use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::{MemberSecret, SECRET_NAMESPACE};
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl::{Kubectl, Running};
use hub_tests::prelude::StatusCode;
use hub_tests::testbed::{ALL_VERBS, CLUSTER, Route, Testbed};
use hub_tests::{ports, wait};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub use self::http::Address;
use self::http::Events;
use crate::fixture::{Fixture, clusters, clusters_as, ended, hub_user, rule, test};

pub const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "dashboard::only who knows its address may read it", closed),
        test(fixture, "dashboard::who is not admitted keeps nobody out", crowded),
        test(fixture, "dashboard::what happens to a cluster is seen at once, and nothing else is sent", live),
        test(fixture, "dashboard::a cluster's page tells of its way, its traffic and its failures", one),
        test(fixture, "dashboard::who may see less is told what, and sees the rest", unprivileged),
        test(fixture, "dashboard::with the rights that its page grants all is seen that it promises", granted::granted),
        test(fixture, "dashboard::a port that is taken, and a hub that is away, are told of", mistakes),
    ]
}

/// Starts a dashboard. Returns it, and its address.
pub fn start(program: &Kubectl, more: &str) -> Result<(Running, Address)> {
    let line = format!("dashboard --no-open --interval 200ms {more}");
    let mut running = program.args(line.split_whitespace()).start()?;
    let address = Address::parse(&running.next_line(LIMIT)?)?;
    Ok((running, address))
}

fn closed(testbed: &Testbed) -> Result<()> {
    let (_running, address) = start(&clusters(testbed), "")?;
    let page = address.get("", &[])?;
    ensure!(page.status == 200 && page.body.contains(CLUSTER), "{page:?}");
    for (name, value) in [
        ("content-security-policy", "default-src 'none'; script-src 'self'"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
    ] {
        ensure!(page.header(name).is_some_and(|found| found.starts_with(value)), "{name}: {page:?}");
    }
    ensure!(page.header("access-control-allow-origin").is_none() && page.header("set-cookie").is_none(), "{page:?}");
    for path in ["", "events", "page.js", &format!("clusters/{CLUSTER}"), &format!("clusters/{CLUSTER}/events")] {
        let stranger = address.with_token("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").get(path, &[])?;
        ensure!(stranger.status == 403 && !stranger.body.contains(CLUSTER), "{path}: {stranger:?}");
        let rebound = address.get(path, &[("Host", "evil.example")])?;
        ensure!(rebound.status == 421 && !rebound.body.contains(CLUSTER), "{path}: {rebound:?}");
        let elsewhere = address.get(path, &[("Host", &format!("localhost:{}", address.port()))])?;
        ensure!(elsewhere.status == 421 && elsewhere.body.contains("with 127.0.0.1 and"), "{path}: {elsewhere:?}");
        let posted = address.send("POST", path, &[])?;
        ensure!(posted.status == 405, "{path}: {posted:?}");
    }
    for path in ["nothing", "clusters/..%2f", "clusters/A", "../", "clusters/a/b"] {
        ensure!(address.get(path, &[])?.status != 200, "{path}");
    }
    ensure!(address.is_refused_elsewhere()?, "it listens on more than loopback");
    Ok(())
}

/// Most concurrent connections of a dashboard.
const CONNECTIONS: usize = 64;

fn crowded(testbed: &Testbed) -> Result<()> {
    let (_running, address) = start(&clusters(testbed), "")?;
    let stranger = address.with_token("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let refused = stranger.get("", &[("Connection", "keep-alive")])?;
    ensure!(refused.status == 403 && refused.header("connection") == Some("close"), "it is kept: {refused:?}");
    let mut silent = (0..CONNECTIONS).map(|_| address.silent()).collect::<Result<Vec<_>>>()?;
    ensure!(address.get("", &[])?.status == 200, "nobody is answered");
    let mut is_open =
        |place: usize| silent[place].read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    ensure!(!is_open(0) && is_open(CONNECTIONS - 1), "the oldest gives way, and no other");
    Ok(())
}

fn live(testbed: &Testbed) -> Result<()> {
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let (_running, address) = start(&clusters(testbed), "")?;
    let page = address.get("?view=tiles", &[])?;
    let version = page.body.split("events?v=").nth(1).and_then(|rest| rest.split('"').next()).context("a version")?;
    // A page whose connection broke long ago gets everything, so that it drops what is gone.
    let whole = address.events("events?v=999999")?.until(LIMIT, |patch| patch["whole"] == true)?;
    ensure!(whole["clusters"][CLUSTER]["status"].is_string() && whole["parts"]["count-bad"].is_string(), "{whole}");
    let mut events = address.events(&format!("events?v={version}"))?;
    testbed.hub.register_member("page-live", &member)?;
    testbed
        .hub
        .server
        .annotate(&format!("secret page-live -n {SECRET_NAMESPACE} cluster.core.oam.dev/cluster-alias=<b>Live</b>"))?;
    let born = events.until(LIMIT, |patch| patch["clusters"]["page-live"]["status"].is_string())?;
    ensure!(born["clusters"]["page-live"].as_object().is_some_and(|fields| fields.len() == 11), "all of it: {born}");
    let ready = if born["clusters"]["page-live"]["status"] == "Ready" {
        born
    } else {
        events.until(LIMIT, |patch| patch["clusters"]["page-live"]["status"] == "Ready")?
    };
    ensure!(ready["clusters"]["page-live"]["state"] == "warning", "its token ends within a day: {ready}");
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member("page-live", &member.clone().at(&dead))?;
    let failed = events.until(LIMIT, |patch| patch["clusters"]["page-live"]["state"] == "bad")?;
    let fields = failed["clusters"]["page-live"].as_object().context("fields")?;
    ensure!(
        fields["status"] == "Unreachable" && fields["reason"].as_str().is_some_and(|why| why.contains("dial tcp")),
        "{failed}"
    );
    ensure!(!fields.contains_key("credential") && !fields.contains_key("reached"), "only what changed: {failed}");
    ensure!(failed["clusters"].get(CLUSTER).is_none_or(|other| other.get("status").is_none()), "{failed}");
    ensure!(failed["parts"]["count-bad"].is_string(), "{failed}");
    testbed.hub.forget_member("page-live")?;
    events
        .until(LIMIT, |patch| patch["gone"].as_array().is_some_and(|gone| gone.contains(&Value::from("page-live"))))?;
    Ok(())
}

fn one(testbed: &Testbed) -> Result<()> {
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member("page-one", &member)?;
    let program = clusters(testbed);
    ended(&program, "get namespaces page-one", 0)?;
    let (_running, address) = start(&program, "")?;
    ensure!(address.get("", &[])?.body.contains("clusters/page-one"), "it is listed");
    let page = address.get("clusters/page-one", &[])?;
    ensure!(page.status == 200 && page.body.contains("<h1>page-one</h1>"), "{page:?}");
    ensure!(page.body.contains("<dt>Expires</dt>") && page.body.contains(&testbed.member.server.url()), "{page:?}");
    let mut events = address.events("clusters/page-one/events")?;
    let mut parts = Parts::default();
    parts.until(&mut events, "way", |way| way.contains("accepted, as"))?;
    let way = parts.of("way");
    for hop in ["hub", "gateway", "registration", "member", "credential"] {
        ensure!(way.contains(&format!("</i>{hop}</b>")), "{hop}: {way}");
    }
    ensure!(way.contains(" ms</span>") && !way.contains("class=\"bad\""), "{way}");
    parts.until(&mut events, "answers", |answers| answers.contains("<b>200</b> OK"))?;
    parts
        .until(&mut events, "traffic", |traffic| traffic.contains("requests / s") && !traffic.contains("<dd>…</dd>"))?;
    // A watch is counted while it is open.
    let credential = Credential::Token(testbed.token.clone());
    let through = testbed.kubectl_as(Route::Hub, "page-one", "page-watch", credential)?;
    let mut watching = through.args(["get", "--watch", "namespaces"]).start()?;
    watching.next_line(LIMIT)?;
    let open = "<dt>open watches</dt><dd>1</dd>";
    parts.until(&mut events, "traffic", |traffic| traffic.contains(open))?;
    drop(watching);
    // The member becomes unreachable: the way fails, and the failures say why.
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member("page-one", &member.at(&dead))?;
    parts.until(&mut events, "way", |way| way.contains("<li class=\"bad\"><b><i class=\"dot bad\"></i>member"))?;
    ensure!(
        parts.of("way").contains("connection refused") && parts.of("way").contains("class=\"remedy\""),
        "{}",
        parts.of("way")
    );
    parts.until(&mut events, "failures", |failures| {
        failures.contains("connection refused") && failures.contains(">member<")
    })?;
    parts.until(&mut events, "answers", |answers| answers.contains("Side that failed"))?;
    // A page that is opened now shows it at once.
    ensure!(address.get("clusters/page-one", &[])?.body.contains("connection refused"), "it is remembered");
    testbed.hub.forget_member("page-one")
}

/// A cluster that a user may not use.
const OTHER: &str = "elsewhere";

fn unprivileged(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("page-user", &[CLUSTER], ALL_VERBS)?;
    let program = clusters_as(testbed, &hub_user(testbed, "page-user", &token)?);
    let (_running, address) = start(&program, "")?;
    let mut events = address.events("events?v=0")?;
    let refused = events.until(LIMIT, |patch| patch["parts"]["notices"].is_string())?;
    let notice = refused["parts"]["notices"].as_str().unwrap_or_default();
    ensure!(notice.contains("does not list its clusters") && notice.contains("clustergateways"), "{notice}");
    ensure!(notice.contains("for that verb on that resource"), "not the right that is lacking: {notice}");
    let (hub, group, user) = (&testbed.hub.server, "cluster.core.oam.dev", ("default", "page-user"));
    hub.grant("page-user-lists", None, &json!([rule(group, &["clustergateways"], &["list", "get"])]), user)?;
    let own = events.until(LIMIT, |patch| patch["clusters"][CLUSTER]["status"] == "Ready")?;
    ensure!(own["clusters"][CLUSTER]["expires"].as_str().unwrap_or_default().is_empty(), "{own}");
    let page = address.get("", &[])?.body;
    ensure!(page.contains("Agents, aliases and expiry of credentials are not shown"), "{page}");
    // Without the right to it, traffic is not shown; everything else is.
    let mut events = address.events(&format!("clusters/{CLUSTER}/events"))?;
    let mut parts = Parts::default();
    parts.until(&mut events, "notices", |notices| notices.contains("Traffic and failures are not shown"))?;
    ensure!(parts.of("notices").contains("verb get on clustergateways/traffic"), "{}", parts.of("notices"));
    parts.until(&mut events, "way", |way| way.contains("accepted, as"))?;
    let path = format!("/apis/{group}/v1alpha1/clustergateways/{CLUSTER}/traffic");
    let bearer = format!("Bearer {token}");
    let raw = |path: &str| hub.client(None).get(path, &[("authorization", &*bearer)]);
    let refused = raw(&path)?;
    ensure!(refused.status == StatusCode::FORBIDDEN, "{}", refused.text());
    let mut reads = rule(group, &["clustergateways/traffic"], &["get"]);
    reads["resourceNames"] = json!([CLUSTER]);
    hub.grant("page-user-reads", None, &json!([reads]), user)?;
    wait::until_true("the right to read it", LIMIT, || Ok(raw(&path)?.status == StatusCode::OK))?;
    let told = raw(&path)?.expect(StatusCode::OK)?.json()?;
    ensure!(told["kind"] == "ClusterTraffic" && told["metadata"]["name"] == CLUSTER, "{told}");
    ensure!(!told.to_string().contains("eyJ"), "a credential: {told}");
    let path = path.replace(CLUSTER, OTHER);
    let other = raw(&path)?;
    ensure!(other.status == StatusCode::FORBIDDEN, "the traffic of another cluster: {}", other.text());
    parts.until(&mut events, "answers", |answers| answers.contains("<b>200</b>"))?;
    Ok(())
}

fn mistakes(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let told = ended(&program, &format!("dashboard --no-open --port {}", taken.local_addr()?.port()), 1)?.stderr;
    ensure!(told.contains("cannot listen on 127.0.0.1:") && told.contains("--port"), "{told}");
    let dead = hub_tests::kubeconfig::Kubeconfig {
        server: format!("https://127.0.0.1:{}", ports::free()?),
        authority: testbed.hub.server.authority_file().to_path_buf(),
        credential: Credential::None,
    };
    let dead = dead.write(testbed.launcher().file("page-dead.kubeconfig"))?;
    let (_running, address) = start(&clusters_as(testbed, &dead), "")?;
    let page = address.get("", &[])?;
    ensure!(page.status == 200, "{page:?}");
    let told = wait::until("the page to tell", LIMIT, || {
        let page = address.get("", &[])?.body;
        ensure!(page.contains("does not list its clusters"), "{page}");
        Ok(page)
    })?;
    ensure!(told.contains("refused") && told.contains("check that the hub&#39;s address"), "{told}");
    Ok(())
}

/// The parts of a cluster's page, after the events so far.
#[derive(Default)]
pub struct Parts(std::collections::HashMap<String, String>);

// === impl Parts ===

impl Parts {
    pub fn of(&self, id: &str) -> &str {
        self.0.get(id).map(String::as_str).unwrap_or_default()
    }

    pub fn until(&mut self, events: &mut Events, id: &str, is: impl Fn(&str) -> bool) -> Result<()> {
        if is(self.of(id)) {
            return Ok(());
        }
        let outcome = events.until(LIMIT, |patch| {
            for (id, part) in patch["parts"].as_object().into_iter().flatten() {
                self.0.insert(id.clone(), part.as_str().unwrap_or_default().to_owned());
            }
            is(self.of(id))
        });
        outcome.map(drop).with_context(|| format!("{id} is {}", self.of(id)))
    }
}
