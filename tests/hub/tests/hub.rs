//! The product on real control planes: kubectl prints the same through the gateway as directly, and
//! the hub decides who may do what.
//!
//! One binary with its own main, so that all tests share one hub and one member, which are stopped
//! at the end whatever the tests did. The first test that runs starts them (`--list` starts
//! nothing).

mod access;
mod aggregation;
mod answers;
mod bytes;
mod clusters;
mod compare;
mod crowd;
mod dialects;
mod egress;
mod election;
mod exported;
mod fixture;
mod fleet;
mod forward;
mod heads;
mod hostile;
mod identity;
mod informers;
mod karmada;
mod monitoring;
mod outage;
mod parity;
mod reads;
mod request_info;
mod shared;
mod shutdown;
mod streams;
mod terminal;
mod traces;
mod tunnel;
mod vela;
mod versions;
mod viewer;
mod watches;
mod writes;

use std::process::ExitCode;

use self::compare::Ways;
use self::fixture::Fixture;
use hub_tests::testbed::Testbed;

fn main() -> ExitCode {
    let fixture = Fixture::new(Testbed::start);
    let trials = [
        aggregation::trials(&fixture),
        informers::trials(&fixture), // long ones, which should not be the last to end
        parity::trials(&fixture),
        forward::trials(&fixture, Ways::Dialled),
        reads::trials(&fixture, Ways::Dialled),
        writes::trials(&fixture, Ways::Dialled),
        watches::trials(&fixture, Ways::Dialled),
        streams::trials(&fixture, Ways::Dialled),
        terminal::trials(&fixture, Ways::Dialled),
        egress::trials(&fixture),
        election::trials(&fixture),
        tunnel::trials(&fixture),
        crowd::trials(&fixture),
        heads::trials(&fixture),
        hostile::trials(&fixture),
        shared::trials(&fixture),
        shutdown::trials(&fixture),
        access::trials(&fixture),
        identity::trials(&fixture),
        clusters::trials(&fixture),
        outage::trials(&fixture),
        fleet::trials(&fixture),
        vela::trials(&fixture),
        bytes::trials(&fixture),
        answers::trials(&fixture),
        exported::trials(&fixture),
        dialects::trials(&fixture),
        karmada::trials(&fixture),
        monitoring::trials(&fixture),
        traces::trials(&fixture),
        request_info::trials(),
        versions::trials(&fixture),
        identity::last_trial(&fixture),
        aggregation::last_trial(&fixture),
    ];
    fixture.run(trials)
}
