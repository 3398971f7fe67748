//! The product on real control planes: kubectl sees through the gateway what it sees directly, and
//! the hub decides who may.
//!
//! One binary with its own main, so that all tests share one hub and one member, and these are
//! stopped at the end whatever the tests did. They are started by the first test that runs
//! (`--list` starts nothing).

mod access;
mod aggregation;
mod answers;
mod bytes;
mod clusters;
mod compare;
mod crowd;
mod egress;
mod exported;
mod forward;
mod heads;
mod identity;
mod informers;
mod outage;
mod parity;
mod reads;
mod request_info;
mod shared;
mod shutdown;
mod stage;
mod streams;
mod terminal;
mod tunnel;
mod vela;
mod versions;
mod viewer;
mod watches;
mod writes;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;

use self::compare::Ways;
use self::stage::Stage;

/// Everything here waits for the same two API servers; more at a time only makes single tests
/// slower.
const THREADS: usize = 3;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let stage = Arc::new(Stage::default());
    let trials = [
        aggregation::trials(&stage),
        informers::trials(&stage), // long ones, which should not be the last to end
        parity::trials(&stage),
        forward::trials(&stage, Ways::Dialled),
        reads::trials(&stage, Ways::Dialled),
        writes::trials(&stage, Ways::Dialled),
        watches::trials(&stage, Ways::Dialled),
        streams::trials(&stage, Ways::Dialled),
        terminal::trials(&stage, Ways::Dialled),
        egress::trials(&stage),
        tunnel::trials(&stage),
        crowd::trials(&stage),
        heads::trials(&stage),
        shared::trials(&stage),
        shutdown::trials(&stage),
        access::trials(&stage),
        identity::trials(&stage),
        clusters::trials(&stage),
        outage::trials(&stage),
        vela::trials(&stage),
        bytes::trials(&stage),
        answers::trials(&stage),
        exported::trials(&stage),
        request_info::trials(),
        versions::trials(&stage),
        aggregation::last_trial(&stage),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials.into_iter().flatten().collect());
    stage.close(conclusion.has_failed());
    conclusion.exit_code()
}
