//! Both charts and `kubectl clusters` on real nodes.
//!
//! A binary with a main of its own: it enters namespaces first, and there starts the nodes once for
//! all tests, which run one after the other because each needs the hub for itself. Only the test
//! with IPv6 alone, which has its own hub, runs beside another. Under its other names, it is the
//! programs under test.

mod agent;
mod controllers;
mod fixture;
mod host_network;
mod joined;
mod life;
mod pods;
mod policy;
mod readme;
mod renewal;
mod rotation;
mod runbook;
mod scaled;
mod six;
mod started;
mod walk;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use node_tests::{namespaces, programs, testbed};

use self::fixture::{Apart, Fixture, installed, removed, test, trial};

/// The allocator of the programs in images.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(code) = programs::requested() {
        return code;
    }
    if std::env::args().nth(1).as_deref() == Some(six::WORD) {
        return six::main();
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let possible = if arguments.list || namespaces::inside().is_some() { Ok(()) } else { outside() };
    let fixture = Arc::new(Fixture::default());
    let are_all = arguments.filter.is_none() && arguments.skip.is_empty();
    let trials =
        trials(&fixture, are_all).into_iter().map(|trial| trial.with_ignored_flag(possible.is_err())).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    fixture.close(conclusion.has_failed());
    conclusion.exit_code()
}

/// The tests, in this order. All but the first four, the one with IPv6 alone and the last use the
/// README's installation, which the first of them makes and the last of them removes.
///
/// If `are_all` of them run, the one with IPv6 alone begins with the one before it, which mostly
/// waits, and does not search for processes: it would find those of both testbeds.
fn trials(fixture: &Arc<Fixture>, are_all: bool) -> Vec<Trial> {
    let six = Apart::new(six::nested);
    let beside = six.clone();
    vec![
        test(fixture, "walk::two clusters are joined, lost, found, rotated and detached", walk::walk),
        test(fixture, "started::getting started, word for word", started::follow),
        test(fixture, "started::what install prints is all that kubectl needs", started::printed),
        test(
            fixture,
            "host_network::gateways with a port of their node are installed and replaced",
            host_network::replaced,
        ),
        installed(fixture, "readme::installing, and a cluster that cannot be reached, word for word", |_| Ok(())),
        installed(fixture, "pods::what the charts say of security, the kernel does", pods::confined),
        installed(fixture, "pods::many watches fit into the programs' memory", pods::crowded),
        installed(fixture, "renewal::clients notice no renewal of a certificate or a CA", renewal::renewed),
        installed(fixture, "life::clients notice no upgrade, rollback, deletion or drain", life::changed),
        installed(fixture, "agent::its own page, word for word", agent::installed),
        installed(fixture, "controllers::works are delivered, whoever leads", controllers::led),
        installed(fixture, "policy::a pod that may not connect cannot, and what has to works on", policy::enforced),
        installed(fixture, "pods::nobody evicts two of a program at a time", pods::evicted),
        installed(fixture, "pods::a program that hangs gets no requests", pods::probed),
        installed(fixture, "pods::a program that hangs for good is killed soon", pods::killed),
        installed(fixture, "runbook::what the pages say of pods can be followed", runbook::followed),
        installed(fixture, "rotation::an agent's token is renewed and revoked as the page says", move |testbed| {
            if are_all {
                beside.begin();
            }
            rotation::rotated(testbed)
        }),
        trial("six::pods are ready where there is IPv6 alone", six),
        installed(
            fixture,
            "scaled::a gateway more under load, and one less, and clients notice neither",
            scaled::by_load,
        ),
        removed(fixture, "readme::nothing is left but what the documentation says"),
        test(fixture, "joined::an agent that joins by itself, word for word", joined::followed),
    ]
}

/// Enters namespaces, and does not return. An error: this machine can have no nodes.
#[allow(clippy::print_stderr, reason = "why tests are ignored belongs to the output of a run")]
fn outside() -> anyhow::Result<()> {
    namespaces::possible().inspect_err(|error| eprintln!("the tests on nodes are ignored: {error:#}"))?;
    let entered = testbed::tools().and_then(|_| namespaces::enter(std::env::args_os().skip(1)));
    eprintln!("the tests on nodes failed: {:#}", entered.err().unwrap_or_else(|| anyhow::anyhow!("they never ran")));
    std::process::exit(1)
}
