//! Output of the demo on real control planes: where everything runs, and what to try next.

use std::{
    io::{self, Write},
    path::Path,
};

use hub_tests::{
    testbed::{CLUSTER, Testbed},
    tunnel::CLUSTER_TUNNEL,
};
use tokio::time::Instant;

use super::{OPERATOR, POD, Real, STRANGER, Step};
use demo::report::{Report, Tally, quoted};

/// The report of a demo on real control planes.
#[derive(Debug)]
pub struct RealReport<W>(Report<W>);

// === impl RealReport ===

impl<W: Write> RealReport<W> {
    /// A report that is written to `out`.
    pub fn new(out: W) -> Self {
        Self(Report::new(out))
    }

    /// Says what the user may have to wait for.
    pub fn prepare(&mut self) -> io::Result<()> {
        let text = "Looking for etcd, kube-apiserver, kubectl and the others; the first run\n\
                    builds them from Go modules, which takes some minutes ...";
        writeln!(self.0.out, "{text}")
    }

    /// Says that the wait is over.
    pub fn prepared(&mut self) -> io::Result<()> {
        writeln!(self.0.out, "They are there. Starting two control planes ...\n")
    }

    /// Says what runs where.
    pub fn arrangement(&mut self, real: &Real) -> io::Result<()> {
        let (testbed, out) = (&real.testbed, &mut self.0.out);
        writeln!(out, "A hub and a member from Kubernetes' own programs, the gateway behind the hub's aggregator:\n")?;
        writeln!(out, "  {:<8} {}  kube-apiserver, kube-controller-manager, etcd", "hub", testbed.hub.server.url())?;
        let rest = "kube-apiserver, kube-controller-manager, kube-scheduler, kwok";
        writeln!(out, "  {:<8} {}  {rest}", CLUSTER, testbed.member.server.url())?;
        writeln!(out, "  {:<8} https://{}  in this process", "gateway", testbed.gateway.address())?;
        let agents = real.tunnel_server.agent_address();
        writeln!(out, "  {:<8} https://{agents}  tunnel-server, to which an agent of the member dials", "tunnel")?;
        writeln!(out, "\nReady after {:.1} s.\n", real.ready_after.as_secs_f32())
    }

    /// Runs every step, in order, until `stop` says so, and says how each went. Blocks.
    pub fn steps(&mut self, real: &Real, stop: impl Fn() -> bool) -> io::Result<Tally> {
        let mut tally = Tally::default();
        for step in Step::ALL.into_iter().take_while(|_| !stop()) {
            let started = Instant::now();
            let outcome = step.run(real);
            self.0.step(&mut tally, step.title(), started.elapsed(), &outcome)?;
        }
        self.0.sum(tally)?;
        Ok(tally)
    }

    /// Says where the programs' logs stay.
    pub fn logs(&mut self, directory: &Path) -> io::Result<()> {
        writeln!(self.0.out, "The logs stay in {} until the next run.", directory.display())
    }

    /// Says what to try, with commands to paste.
    pub fn invite(&mut self, real: &Real) -> io::Result<()> {
        let out = &mut self.0.out;
        let (kubectl, server) = (&real.kubectl, real.testbed.hub.server.url());
        writeln!(out, "\nTry it, in another terminal:\n")?;
        writeln!(out, "  export KUBECONFIG={}", quoted(&kubectl.kubeconfig))?;
        writeln!(out, "  alias kubectl={}  # or your own", quoted(&kubectl.binary))?;
        writeln!(out, "\nThe context `{CLUSTER}` goes to {server}{}", Testbed::proxy_path(CLUSTER))?;
        writeln!(out, "(`{CLUSTER_TUNNEL}` from there through a tunnel, `direct` straight to the member):\n")?;
        for line in [
            "get pods -A -o wide",
            "scale deployment shop --replicas=5",
            "get pods --watch",
            &format!("exec -it {POD} -- sh  # a shell of yours on this machine plays the container"),
            &format!("--user {STRANGER} get pods"),
        ] {
            writeln!(out, "  kubectl --context {CLUSTER} {line}")?;
        }
        writeln!(out, "  kubectl --context {CLUSTER_TUNNEL} get pods -A")?;
        writeln!(out, "\nFollow a log, and write it:\n")?;
        writeln!(out, "  kubectl --context {CLUSTER} logs --follow {POD}")?;
        writeln!(out, "  echo hello >> {}", quoted(&real.log()))?;
        writeln!(out, "\nThe hub, as {OPERATOR}:\n")?;
        for line in ["get clustergateways -o wide", "get secrets -n vela-system", "get apiservices"] {
            writeln!(out, "  kubectl --context hub {line}")?;
        }
        writeln!(out, "\nCtrl-C ends it.")
    }
}
