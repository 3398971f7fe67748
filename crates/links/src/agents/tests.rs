mod crowd;
mod ocm;
mod reviews;
mod withdrawn;

use std::path::Path;

use http::StatusCode;
use kit::frames::{Frames, SETTINGS, encode};
use kit::hub::{Call, Decision, FakeHub, Fault, TokenUser};
use kit::pki::{Authority, Issued, Leaf, Trust, client_config};
use kit::wait::{becomes, within};
use net::tls::server::KeyPairFiles;
use rustls_pki_types::ServerName;
use secrecy::SecretString;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tunnel::Settings;
use tunnel::register::{self, RegisterError, Registered, Registration};
use tunnel::{ClusterName, Destination, Gauge, Incoming, LinkError, Refusal, Serving, Stream};

use super::*;
use crate::limits::Limits;

const SOON: Duration = Duration::from_secs(20);

/// A listener for agents, with the hub and the CA that they need.
struct Fixture {
    agents: Agents,
    authority: Authority,
    hub: Option<FakeHub>,
    metrics: MetricsRegistry,
    directory: TempDir,
}

/// A linked agent that echoes.
struct Agent {
    serving: Serving,
    server: String,
    ended: JoinHandle<Result<(), LinkError>>,
}

// === impl Fixture ===

impl Fixture {
    /// Starts without a hub.
    async fn start() -> Self {
        Self::with(None, |_| {}).await
    }

    async fn with_hub() -> Self {
        Self::with(Some(FakeHub::start().await), |_| {}).await
    }

    async fn with(hub: Option<FakeHub>, change: impl FnOnce(&mut AgentsConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("agents");
        authority.write_to(directory.path(), "ca").unwrap();
        let serving = Authority::new("servers").issue(&Leaf::server("tunnel-server"));
        let files = serving.write_to(directory.path(), "serving").unwrap();
        let mut config = AgentsConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            serving: KeyPairFiles { certificate: files.certificate, private_key: files.key },
            client_ca_file: Some(directory.path().join("ca.crt")),
            hub_client_ca: false,
            settings: Settings::default(),
            drain_timeout: SOON,
            recheck: Duration::from_millis(200),
            limits: Limits::default(),
        };
        change(&mut config);
        let mut metrics = MetricsRegistry::default();
        let client = match &hub {
            Some(hub) => {
                let kubeconfig = hub.write_kubeconfig(directory.path()).unwrap();
                Some(hub::client::client(Some(&kubeconfig), "test").await.unwrap().into())
            }
            None => None,
        };
        let agents = Agents::start(&config, client, &Handle::current(), &mut metrics).unwrap();
        Self { agents, authority, hub, metrics, directory }
    }

    fn hub(&self) -> &FakeHub {
        self.hub.as_ref().unwrap()
    }

    fn certificate(&self, common_name: &str) -> Issued {
        self.authority.issue(&Leaf::client(common_name))
    }

    async fn apply(
        &self,
        cluster: &str,
        identity: Option<&Issued>,
        token: Option<&str>,
    ) -> Result<Registered<TlsStream<TcpStream>>, RegisterError> {
        let connector = TlsConnector::from(client_config(Trust::Anyone, identity, &["http/1.1"]));
        let stream = TcpStream::connect(self.agents.address()).await?;
        let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await?;
        let registration =
            Registration { cluster: name(cluster), agent: "agent-1".to_owned(), link: 0, version: "1".to_owned() };
        let token = token.map(|token| SecretString::from(token.to_owned()));
        register::register(stream, "tunnel-server", &registration, token.as_ref(), SOON).await
    }

    async fn link(&self, cluster: &str, identity: Option<&Issued>, token: Option<&str>) -> Agent {
        let registered = self.apply(cluster, identity, token).await.unwrap();
        let serving = Serving::default();
        let control = serving.clone();
        let ended =
            tokio::spawn(async move { tunnel::serve(registered.io, &Settings::default(), control, echo).await });
        within(SOON, "the link", self.agents.registry().until_linked(&name(cluster))).await;
        Agent { serving, server: registered.server, ended }
    }

    /// The status, text and `Retry-After` of a refusal.
    async fn refused(
        &self,
        cluster: &str,
        identity: Option<&Issued>,
        token: Option<&str>,
    ) -> (StatusCode, String, Option<Duration>) {
        match self.apply(cluster, identity, token).await {
            Err(RegisterError::Refused { status, message, retry_after }) => (status, message, retry_after),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("{cluster} was linked"),
        }
    }

    async fn open(&self, cluster: &str) -> Result<(Stream, Arc<Gauge>), Refusal> {
        let to = Destination::new("kubernetes.default.svc", 443).unwrap();
        self.agents.registry().open(&name(cluster), &to, SOON).await
    }

    /// Waits for a line of the metrics.
    async fn metric_becomes(&self, line: &str) {
        becomes(SOON, line, async || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &self.metrics).unwrap();
            text.lines().any(|shown| shown == line)
        })
        .await;
    }

    fn write(&self, name: &str, contents: &str) {
        // As mounted Secrets change: by a rename of another file.
        let new = self.directory.path().join("new");
        std::fs::write(&new, contents).unwrap();
        std::fs::rename(new, self.directory.path().join(name)).unwrap();
    }
}

fn name(cluster: &str) -> ClusterName {
    ClusterName::parse(cluster).unwrap()
}

async fn echo(incoming: Incoming) {
    let Ok(stream) = incoming.accept() else { return };
    let (mut from, mut to) = tokio::io::split(stream);
    if tokio::io::copy(&mut from, &mut to).await.is_ok() {
        let _ = to.shutdown().await;
    }
}

async fn echoes(stream: &mut Stream) {
    stream.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    within(SOON, "the echo", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"ping");
}

async fn is_reset(stream: &mut Stream) -> bool {
    let mut rest = Vec::new();
    let end = within(SOON, "the reset", stream.read_to_end(&mut rest)).await;
    end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn without_a_hub_the_certificates_name_decides() {
    let fixture = Fixture::start().await;
    let agent = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
    let (mut stream, _gauge) = fixture.open("east").await.unwrap();
    echoes(&mut stream).await;
    assert!(!agent.server.is_empty());

    for common_name in ["system:tunnel-agent:west", "east", "system:tunnel-agent:eas", "system:tunnel-agent:east.x"] {
        let (status, message, _) = fixture.refused("east", Some(&fixture.certificate(common_name)), None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{common_name}");
        assert!(message.contains(common_name) && message.contains("system:tunnel-agent:east"), "{message}");
    }
    let stranger = Authority::new("strangers").issue(&Leaf::client("system:tunnel-agent:east"));
    let expired = fixture.authority.issue(&Leaf::client("system:tunnel-agent:east").expired());
    for (identity, token) in [(None, None), (Some(&stranger), None), (Some(&expired), None), (None, Some("token"))] {
        let (status, message, _) = fixture.refused("east", identity, token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(message.contains("tokens are not accepted here"), "{message}");
    }
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"forbidden\"} 4").await;
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"unauthenticated\"} 4").await;
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"linked\"} 1").await;
    fixture.metric_becomes("tunnel_server_links{cluster=\"east\"} 1").await;
}

#[tokio::test]
async fn with_a_hub_its_rbac_decides_for_tokens_and_certificates_alike() {
    let fixture = Fixture::with_hub().await;
    fixture.hub().add_token("good", TokenUser::new("system:serviceaccount:vela:east", &[]));
    fixture.hub().on_access(|spec| match (spec["user"].as_str(), &spec["resourceAttributes"]["name"]) {
        _ if spec["groups"].as_array().is_some_and(|groups| groups.iter().any(|group| group == "system:masters")) => {
            Decision::allow()
        }
        (Some("in-a-group"), _) => match spec["groups"].to_string().as_str() {
            r#"["members","system:authenticated"]"# => Decision::allow(),
            other => Decision::no_opinion(&format!("of {other}")),
        },
        (Some("system:serviceaccount:vela:east" | "by-certificate"), name) if name == "east" => Decision::allow(),
        _ => Decision::no_opinion("no rule"),
    });
    let by_token = fixture.link("east", None, Some("good")).await;
    let by_certificate = fixture.link("east", Some(&fixture.certificate("by-certificate")), None).await;
    assert_eq!(by_token.server, by_certificate.server);

    let (status, message, _) = fixture.refused("west", None, Some("good")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    for part in ["system:serviceaccount:vela:east", "\"create\" of \"clustergateways/tunnel\"", "\"west\""] {
        assert!(message.contains(part), "{message}");
    }
    let (status, ..) = fixture.refused("east", None, Some("bad")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // A token's groups as the hub reviews them, and a certificate's groups without `system:`, reach
    // RBAC.
    fixture.hub().add_token("master", TokenUser::new("root", &["system:masters"]));
    drop(fixture.apply("north", None, Some("master")).await.unwrap());
    let grouped = Leaf::client("in-a-group").group("members").group("system:nodes");
    drop(fixture.apply("south", Some(&fixture.authority.issue(&grouped)), None).await.unwrap());
    // A certificate's group `system:masters` does not count.
    let master = fixture.authority.issue(&Leaf::client("root").group("system:masters"));
    let (status, ..) = fixture.refused("east", Some(&master), None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_hub_that_cannot_be_asked_is_no_verdict() {
    let fixture = Fixture::with_hub().await;
    fixture.hub().add_token("good", TokenUser::new("east", &[]));
    fixture.hub().allow_all();
    let _agent = fixture.link("east", None, Some("good")).await;
    let (mut stream, _gauge) = fixture.open("east").await.unwrap();
    fixture.hub().fail(Call::AccessReview, Fault::Status(403));
    let asked = fixture.hub().calls(Call::AccessReview);
    becomes(SOON, "more looks at the link", async || fixture.hub().calls(Call::AccessReview) > asked + 2).await;
    echoes(&mut stream).await;
    let (status, message, retry_after) = fixture.refused("west", None, Some("good")).await;
    assert_eq!((status, retry_after), (StatusCode::SERVICE_UNAVAILABLE, Some(Duration::from_secs(5))));
    assert!(message.contains("the hub could not review this agent"), "{message}");
}

#[tokio::test]
async fn what_is_revoked_on_the_hub_ends_the_link() {
    let fixture = Fixture::with_hub().await;
    fixture.hub().add_token("good", TokenUser::new("east", &[]));
    fixture.hub().allow_all();
    let agent = fixture.link("east", None, Some("good")).await;
    let (mut stream, _gauge) = fixture.open("east").await.unwrap();
    echoes(&mut stream).await;
    fixture.hub().on_access(|_| Decision::no_opinion("revoked"));
    assert!(is_reset(&mut stream).await);
    within(SOON, "the agent's end", agent.ended).await.unwrap().ok();
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"revoked\"} 1").await;

    fixture.hub().allow_all();
    // The cached refusal expires soon.
    becomes(SOON, "being allowed again", async || fixture.apply("east", None, Some("good")).await.is_ok()).await;
    let agent = fixture.link("east", None, Some("good")).await;
    fixture.hub().remove_token("good");
    within(SOON, "the agent's end", agent.ended).await.unwrap().ok();
}

#[tokio::test]
async fn a_rotated_ca_ends_links_of_certificates_it_does_not_know_and_no_others() {
    let fixture = Fixture::start().await;
    let next = Authority::new("agents, next");
    let both = format!("{}{}", fixture.authority.root_pem(), next.root_pem());
    let old = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
    fixture.write("ca.crt", &both);
    let renewed = next.issue(&Leaf::client("system:tunnel-agent:west"));
    becomes(SOON, "the new CA", async || fixture.apply("west", Some(&renewed), None).await.is_ok()).await;
    let _new = fixture.link("west", Some(&renewed), None).await;
    let (mut staying, _gauge) = fixture.open("west").await.unwrap();
    assert!(!old.ended.is_finished());
    fixture.write("ca.crt", &next.root_pem());
    within(SOON, "the old agent's end", old.ended).await.unwrap().ok();
    echoes(&mut staying).await;
}

#[tokio::test]
async fn limits_are_told_with_the_time_to_come_again() {
    let limits = Limits { links_per_cluster: 1, ..Limits::default() };
    let fixture = Fixture::with(Some(FakeHub::start().await), |config| config.limits = limits).await;
    fixture.hub().allow_all();
    fixture.hub().add_token("one", TokenUser::new("one", &[]));
    fixture.hub().add_token("other", TokenUser::new("other", &[]));
    let _agent = fixture.link("east", None, Some("one")).await;
    let (status, message, retry_after) = fixture.refused("east", None, Some("other")).await;
    assert_eq!((status, retry_after), (StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(5))));
    assert!(message.contains("1 links") && message.contains("limit of one cluster"), "{message}");
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"limit\"} 1").await;
}

#[tokio::test]
async fn connections_that_say_nothing_are_closed_in_time() {
    let settings = Settings { handshake_timeout: Duration::from_secs(2), ..Settings::default() };
    let fixture = Fixture::with(None, |config| config.settings = settings).await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(TcpStream::connect(fixture.agents.address()).await.unwrap());
    }
    let _agent = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
    for mut stream in silent {
        let closed = within(SOON, "being closed", stream.read(&mut [0])).await;
        assert!(matches!(closed, Ok(0) | Err(_)));
    }
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"malformed\"} 4").await;
}

#[tokio::test]
async fn draining_asks_agents_to_leave_lets_streams_end_and_refuses_newcomers() {
    let fixture = Fixture::start().await;
    let identity = fixture.certificate("system:tunnel-agent:east");
    let agent = fixture.link("east", Some(&identity), None).await;
    let (mut stream, gauge) = fixture.open("east").await.unwrap();
    let drain = Drain::new();
    let finish = async {
        agent.serving.asked_to_leave().await;
        assert!(fixture.open("east").await.is_err());
        let (status, message, _) = fixture.refused("east", Some(&identity), None).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(message.contains("shutting down"), "{message}");
        echoes(&mut stream).await;
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        drop((stream, gauge));
    };
    let started = Instant::now();
    tokio::join!(fixture.agents.drain(&drain), finish);
    assert!(started.elapsed() < SOON / 2, "{:?}", started.elapsed());
    assert!(matches!(within(SOON, "the link's end", agent.ended).await.unwrap(), Ok(())));
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"drained\"} 1").await;
}

#[tokio::test]
async fn what_does_not_end_is_reset_at_the_deadline_and_at_the_hard_signal() {
    for hard in [false, true] {
        let timeout = if hard { SOON } else { Duration::from_millis(300) };
        let fixture = Fixture::with(None, |config| config.drain_timeout = timeout).await;
        let _agent = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
        let (mut stream, _gauge) = fixture.open("east").await.unwrap();
        let drain = Drain::new();
        let guard = drain.guard();
        let cut = async {
            if hard {
                drain.finish(Duration::from_millis(100)).await;
            }
        };
        tokio::join!(within(SOON, "the end", fixture.agents.drain(&drain)), cut);
        drop(guard);
        assert!(is_reset(&mut stream).await);
        assert_eq!(fixture.agents.registry().linked(), []);
    }
}

#[tokio::test]
async fn a_dropped_listener_takes_its_links_with_it() {
    let fixture = Fixture::start().await;
    let _agent = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
    let (mut stream, _gauge) = fixture.open("east").await.unwrap();
    drop(fixture);
    assert!(is_reset(&mut stream).await);
}

#[tokio::test]
async fn nothing_starts_that_could_authenticate_nobody() {
    let config = |ca: Option<&Path>| AgentsConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        serving: KeyPairFiles { certificate: "/nowhere/a.crt".into(), private_key: "/nowhere/a.key".into() },
        client_ca_file: ca.map(Into::into),
        hub_client_ca: false,
        settings: Settings::default(),
        drain_timeout: SOON,
        recheck: AgentsConfig::RECHECK,
        limits: Limits::default(),
    };
    let start = |config| {
        Agents::start(&config, None, &Handle::current(), &mut MetricsRegistry::default()).unwrap_err().to_string()
    };
    let shown = start(config(None));
    assert!(shown.contains("cannot be authenticated") && shown.contains("CA file"), "{shown}");
    let shown = start(config(Some(Path::new("/nowhere/ca.crt"))));
    assert!(shown.contains("/nowhere/ca.crt"), "{shown}");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_counted_and_the_last_good_ones_stay() {
    let fixture = Fixture::start().await;
    fixture.write("serving.crt", "not a certificate");
    fixture.write("ca.crt", "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n");
    fixture.metric_becomes("tunnel_server_agent_certificate_reload_failures_total 1").await;
    fixture.metric_becomes("tunnel_server_agent_client_ca_reload_failures_total 1").await;
    let _agent = fixture.link("east", Some(&fixture.certificate("system:tunnel-agent:east")), None).await;
}

#[tokio::test]
async fn an_agent_that_leaves_is_told_from_one_that_is_lost() {
    let fixture = Fixture::start().await;
    let identity = fixture.certificate("system:tunnel-agent:east");
    let leaving = fixture.link("east", Some(&identity), None).await;
    let (stream, gauge) = fixture.open("east").await.unwrap();
    let mut changes = fixture.agents.registry().changes();
    changes.mark_unchanged();
    leaving.serving.drain();
    within(SOON, "the link's withdrawal", changes.changed()).await.unwrap();
    assert_eq!(fixture.agents.registry().linked(), []);
    drop((stream, gauge));
    within(SOON, "the link's end", leaving.ended).await.unwrap().unwrap();
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"left\"} 1").await;
    let lost = fixture.link("east", Some(&identity), None).await;
    lost.ended.abort();
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"lost\"} 1").await;
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"left\"} 1").await;
}

#[tokio::test]
async fn a_link_that_ends_for_a_flood_of_settings_is_counted_with_that_reason() {
    let fixture = Fixture::start().await;
    let identity = fixture.certificate("system:tunnel-agent:east");
    let registered = fixture.apply("east", Some(&identity), None).await.unwrap();
    let mut agent = Frames::server(registered.io, 100).await.unwrap();
    within(SOON, "the link", fixture.agents.registry().until_linked(&name("east"))).await;
    let flood = encode(SETTINGS, 0, 0, &[]).repeat(100);
    within(SOON, "the link's end", async { while agent.send_all(&flood).await.is_ok() {} }).await;
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"frames\"} 1").await;
}
