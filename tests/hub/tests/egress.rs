//! A kube-apiserver whose egress selector goes through the tunnel reaches kubelets without dialling
//! them: `logs`, `exec` and `port-forward` print the same as on a replica that dials them, and
//! without an agent kubectl shows the tunnel's reason.

use std::net::{Ipv4Addr, SocketAddr};

use hub_tests::control_plane::ApiServer;
use hub_tests::egress::Proxy;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;
use hub_tests::tunnel::{AgentCredential, AgentOptions, metric};
use libtest_mimic::Trial;
use tunnel_server::Server;

use crate::fixture::{Fixture, test};
use crate::forward;
use crate::streams::{self, Protocol};

/// Time for a link, a line of a log, a replica's next dial.
const LIMIT: Duration = Duration::from_secs(30);

/// How the API server speaks to the tunnel-server.
#[derive(Clone, Copy, Debug)]
enum Transport {
    Uds,
    Tls,
}

/// A control plane that can reach its kubelets only through the tunnel-server.
struct Plane<'a> {
    testbed: &'a Testbed,
    name: String,
    server: Server,
    agent: AgentOptions,
    replica: ApiServer,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let trial = |transport: Transport| {
        let name = format!("egress::a control plane reaches its kubelets through the tunnel over {transport:?}");
        test(fixture, name, move |testbed| Plane::start(testbed, transport)?.check())
    };
    [Transport::Uds, Transport::Tls].map(trial).into()
}

// === impl Plane ===

impl<'a> Plane<'a> {
    fn start(testbed: &'a Testbed, transport: Transport) -> Result<Self> {
        streams::pod(testbed)?;
        let name = format!("egress-{transport:?}").to_lowercase();
        let (tunnel, member) = (&testbed.tunnel, &testbed.member);
        let socket = testbed.directory("sockets")?.join(&name);
        let mut flags = match transport {
            Transport::Uds => vec![format!("--frontend-uds={}", socket.display())],
            Transport::Tls => tunnel.frontend_flags(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        };
        flags.push(format!("--default-cluster={name}"));
        let server = tunnel.start_server(&name, &testbed.hub, &flags)?;
        let proxy = match transport {
            Transport::Uds => Proxy::Uds(socket),
            Transport::Tls => Proxy::Tls {
                address: server.frontend_address().context("no frontends' listener")?,
                authority: tunnel.serving_authority_file().to_path_buf(),
                identity: tunnel.frontend().clone(),
            },
        };
        let mut replica = proxy.start_replica(&member.server, &name)?;
        let credential =
            AgentCredential::token(testbed.launcher(), &name, &testbed.hub.create_agent(&name, &[&name])?)?;
        let agent = AgentOptions::new(
            &name,
            server.agent_address(),
            tunnel.serving_authority_file(),
            member.server.address(),
            credential,
        );
        let agent = agent.allow(&member.kubelet().to_string());
        replica.wait_ready()?;
        Ok(Self { testbed, name, server, agent, replica })
    }

    fn check(&self) -> Result<()> {
        self.without_agent()?;
        let agent = self.agent.start()?;
        agent.wait_ready(LIMIT)?;
        self.counted("logs", || self.logs())?;
        self.counted("exec over WebSocket", || self.exec(Protocol::WebSocket))?;
        self.counted("exec over SPDY", || self.exec(Protocol::Spdy))?;
        self.counted("port-forward", || forward::small_echo(&self.replica.kubectl()))?;
        agent.stop()?;
        self.without_agent()?;
        let agent = self.agent.start()?;
        agent.wait_ready(LIMIT)?;
        self.replica.kubectl().ok("logs shell -n streams --tail=1").map(drop)
    }

    /// Runs `run`, during which the tunnel-server must have opened streams.
    fn counted(&self, what: &str, run: impl Fn() -> Result<()>) -> Result<()> {
        let opened = || metric(self.server.admin_address(), "tunnel_server_streams_opened_total", "outcome=\"opened\"");
        let before = opened()?;
        run().with_context(|| what.to_owned())?;
        let after = opened()?;
        ensure!(after > before, "{what} did not go through the tunnel: {after} streams after it, {before} before");
        Ok(())
    }

    fn logs(&self) -> Result<()> {
        let (testbed, name) = (self.testbed, &*self.name);
        testbed.member.run_pod("streams", name, "before\n")?;
        let kubectl = self.replica.kubectl();
        ensure!(kubectl.ok(&format!("logs {name} -n streams"))? == "before\n");
        let mut follower = kubectl.args(["logs", "-f", name, "-n", "streams"]).start()?;
        for (number, text) in ["before", "after", "at last"].into_iter().enumerate() {
            if number > 0 {
                let log = testbed.member.container("streams", name).join("main.log");
                let mut log = std::fs::OpenOptions::new().append(true).open(log)?;
                std::io::Write::write_all(&mut log, format!("{text}\n").as_bytes())?;
            }
            let line = follower.next_line(LIMIT)?;
            ensure!(line == text, "{line:?} instead of {text:?}");
        }
        Ok(())
    }

    fn exec(&self, protocol: Protocol) -> Result<()> {
        let words = ["exec", "-i", "shell", "-n", "streams", "--", "sh", "-c", "cat; echo err >&2; exit 7"];
        let run = |kubectl: Kubectl| protocol.apply(kubectl.args(words)).stdin("one\ntwo").run();
        let (there, direct) = (run(self.replica.kubectl())?, run(self.testbed.member.server.kubectl())?);
        ensure!(there == direct && there.status == 7, "{there:?}\ninstead of\n{direct:?}");
        Ok(())
    }

    /// The error that a user sees for a log when no agent of the cluster is linked: the text of the
    /// tunnel-server's status line.
    fn without_agent(&self) -> Result<()> {
        let kubectl = self.replica.kubectl();
        wait::until("kubectl to show why there is no log", LIMIT, || {
            let output = kubectl.args(["logs", "shell", "-n", "streams"]).run()?;
            let words = ["while dialing", "tunnel-agent", &*self.name];
            ensure!(output.status == 1 && words.iter().all(|word| output.stderr.contains(word)), "{output:?}");
            Ok(())
        })
    }
}
