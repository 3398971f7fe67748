//! The whole gateway, with one serving thread.

pub mod callers;
mod load;
mod watches;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use hub_tests::ports;
use kit::client::{Client, H2Connection, H2Options};
use kit::hub::{ClusterSecret, FakeHub, TokenUser};
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::pki::{Authority, Issued, Leaf, Trust};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tokio::time::{Instant, interval};

use self::load::{Asked, H1Requests};
use self::watches::Watches;
use crate::program::Program;
use crate::{Case, Floor, Harness, Player};

pub const NAMES: [&str; 7] = [
    "gateway-h2",
    "gateway-h1",
    "gateway-front-proxy",
    "gateway-download",
    "gateway-upload",
    "gateway-events",
    "gateway-echo",
];

const CLUSTER: &str = "counted";
const NAMESPACE: &str = "vela-system";
const TOKEN: &str = "user-token";
const SMALL: &str = "/api/v1/namespaces/default/configmaps/small";
const LARGE: &str = "/api/v1/namespaces/default/configmaps/large";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true";
const EXEC: &str = "/api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true&tty=true";
/// Size of the small answer.
const KIBIBYTE: usize = 1 << 10;
/// Requests in a round.
const REQUESTS: u64 = 400;
/// MiB in a round, and in one answer of it.
const MEBIBYTES: u64 = 16;
const AT_ONCE: usize = 8;
/// Protocol of an exec.
const PROTOCOL: &str = "SPDY/3.1";
/// Window that a client of bulk data gives a stream, as curl does.
const WINDOW: u32 = 32 << 20;
/// Groups of a user as the hub's aggregator describes one.
const GROUPS: usize = 20;
/// Starting takes a hundred times as long under valgrind.
const START: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(50);

/// The scripted hub and member around the gateway. Its clients live in the cases.
struct Fakes {
    runtime: Runtime,
    hub: FakeHub,
    member: FakeMember,
    authority: Authority,
    address: SocketAddr,
}

/// A gateway that is ready, and every case for it.
pub fn harness<P: Player>(floor: &Floor<'_>) -> Result<Harness<P>> {
    let program = floor.program(Program::Gateway)?;
    let fakes = Fakes::start()?;
    let gateway = fakes.start_gateway("gateway", &program, floor, Vec::new())?;
    let cases = cases(&Rc::new(fakes))?;
    Ok(Harness { programs: vec![gateway], cases })
}

fn cases(fakes: &Rc<Fakes>) -> Result<Vec<Case>> {
    let [h2, h1, front_proxy, download, upload, events, echo] = NAMES;
    Ok(vec![
        fakes.h2(h2, &fakes.client(None), Asked::new(&path(SMALL), &bearer()))?,
        fakes.h1(h1)?,
        fakes.h2(
            front_proxy,
            &fakes.client(Some(&fakes.hub.front_proxy_identity())),
            Asked::new(&path(SMALL), &asserted()),
        )?,
        fakes.bulk(download, async |connection, asked| load::download(connection, asked).await)?,
        fakes.bulk(upload, async |connection, asked| load::upload(connection, asked, AT_ONCE << 20).await)?,
        fakes.events(events)?,
        fakes.echo(echo)?,
    ])
}

fn path(rest: &str) -> String {
    format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{CLUSTER}/proxy{rest}")
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

fn bearer() -> Vec<(&'static str, String)> {
    vec![("authorization", format!("Bearer {TOKEN}"))]
}

/// The caller's identity, as the aggregator asserts it.
fn asserted() -> Vec<(&'static str, String)> {
    let groups = (0..GROUPS).map(|group| ("x-remote-group", format!("engineering:team-{group}")));
    [("x-remote-user", "jane".to_owned())].into_iter().chain(groups).collect()
}

// === impl Fakes ===

impl Fakes {
    fn start() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (hub, member) =
            runtime.block_on(async { (FakeHub::start().await, FakeMember::start(MemberOptions::default()).await) });
        hub.allow_all();
        hub.add_token(TOKEN, TokenUser::new("jane", &["system:authenticated"]));
        let cluster = ClusterSecret::new(NAMESPACE, CLUSTER);
        hub.put_secret(cluster.endpoint(&member.url()).ca(&member.ca_pem()).token("member-token"));
        let json = [("content-type", "application/json")];
        let (small, large) = (vec![b'1'; KIBIBYTE], vec![b'1'; AT_ONCE << 20]);
        let (small, large) = (Bytes::from(small), Bytes::from(large));
        member.on(SMALL, move |_| Reply::full(200, &json, small.clone()));
        member.on(LARGE, move |_| Reply::full(200, &json, large.clone()));
        member.on(without_query(EXEC), |_| Reply::upgrade_echo(PROTOCOL));
        let address = (Ipv4Addr::LOCALHOST, ports::free()?).into();
        Ok(Self { runtime, hub, member, authority: Authority::new("gateway-ca"), address })
    }

    /// Starts `program` with the flags of every gateway here and `more`. Waits until it is ready.
    fn start_gateway<P: Player>(
        &self,
        name: &'static str,
        program: &Path,
        floor: &Floor<'_>,
        more: Vec<String>,
    ) -> Result<P> {
        let kubeconfig = self.hub.write_kubeconfig(floor.directory)?;
        let serving = self.authority.issue(&Leaf::server("gateway")).write_to(floor.directory, "serving")?;
        let mut flags = vec![
            format!("--secure-port={}", self.address.port()),
            format!("--bind-address={}", self.address.ip()),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--tls-cert-file={}", serving.certificate.display()),
            format!("--tls-private-key-file={}", serving.key.display()),
            "--serving-threads=1".to_owned(),
        ];
        flags.extend(more);
        flags.extend_from_slice(floor.gateway);
        let mut gateway = P::start(name, program, flags, floor.directory)?;
        self.runtime.block_on(self.ready(&mut gateway))?;
        Ok(gateway)
    }

    fn client(&self, identity: Option<&Issued>) -> Client {
        self.client_of(self.address, identity)
    }

    /// A client of another port of the gateway.
    fn client_of(&self, address: SocketAddr, identity: Option<&Issued>) -> Client {
        let options = H2Options { stream_window: WINDOW, ..H2Options::default() };
        Client::new(address, Trust::Authority(&self.authority), identity).h2_options(options)
    }

    async fn ready(&self, gateway: &mut impl Player) -> Result<()> {
        let deadline = Instant::now() + START;
        let mut looks = interval(POLL);
        loop {
            looks.tick().await;
            gateway.check()?;
            // In a task of its own: the kit's clients panic when they have waited for long, and a
            // cold program under valgrind on a busy machine may be that slow.
            let client = self.client(None);
            let local = LocalSet::new();
            let asked = local.spawn_local(async move {
                let answer = client.h2().await.ok()?.get("/readyz", &[]).await.ok()?;
                Some(answer.status())
            });
            let asked = local.run_until(asked);
            if asked.await.is_ok_and(|status| status == Some(200)) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the gateway is not ready after {START:?}");
        }
    }

    fn h2(self: &Rc<Self>, name: &'static str, client: &Client, asked: Asked) -> Result<Case> {
        let connection = Arc::new(self.runtime.block_on(client.h2())?);
        let (fakes, asked) = (Rc::clone(self), Arc::new(asked));
        let load = move |count| fakes.runtime.block_on(load::h2(&connection, &asked, count));
        Ok(Case { name, unit: "request", units: REQUESTS, load: Box::new(load) })
    }

    fn h1(self: &Rc<Self>, name: &'static str) -> Result<Case> {
        let asked = Asked::new(&path(SMALL), &bearer());
        let mut requests = self.runtime.block_on(H1Requests::open(&self.client(None), asked))?;
        let fakes = Rc::clone(self);
        let load = move |count| fakes.runtime.block_on(requests.send(count));
        Ok(Case { name, unit: "request", units: REQUESTS, load: Box::new(load) })
    }

    /// One event on each of [`AT_ONCE`] watches at a time.
    fn events(self: &Rc<Self>, name: &'static str) -> Result<Case> {
        let mut watches = self.runtime.block_on(async {
            let connection = self.client(None).h2().await?;
            let opened = self.member.streams(without_query(WATCH));
            Watches::open(connection, opened, &Asked::new(&path(WATCH), &bearer()), AT_ONCE).await
        })?;
        let fakes = Rc::clone(self);
        let load = move |count| fakes.runtime.block_on(watches.send(count));
        Ok(Case { name, unit: "event", units: REQUESTS, load: Box::new(load) })
    }

    /// A keystroke and its echo, one after the other.
    fn echo(self: &Rc<Self>, name: &'static str) -> Result<Case> {
        let asked = Asked::new(&path(EXEC), &bearer());
        let mut connection = self.runtime.block_on(load::upgraded(&self.client(None), &asked, PROTOCOL))?;
        let fakes = Rc::clone(self);
        let load = move |count| fakes.runtime.block_on(load::echo(&mut connection, count));
        Ok(Case { name, unit: "round trip", units: REQUESTS, load: Box::new(load) })
    }

    /// One stream at a time: `transfer` moves [`AT_ONCE`] MiB.
    fn bulk<F>(self: &Rc<Self>, name: &'static str, transfer: F) -> Result<Case>
    where
        F: AsyncFn(&H2Connection, &Asked) -> Result<()> + 'static,
    {
        let connection = self.runtime.block_on(self.client(None).h2())?;
        let (fakes, asked) = (Rc::clone(self), Asked::new(&path(LARGE), &bearer()));
        let load = move |count| {
            fakes.runtime.block_on(async {
                for _ in 0..count / AT_ONCE as u64 {
                    transfer(&connection, &asked).await?;
                }
                Ok(())
            })
        };
        Ok(Case { name, unit: "MiB", units: MEBIBYTES, load: Box::new(load) })
    }
}
