//! A member that cannot be dialled is used like any other: kubectl's commands through a
//! tunnel-server and through a gateway with an embedded one, compared with the member; and who may
//! be an agent.

mod outage;
mod registration;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::compare::Ways;
use crate::fixture::Fixture;
use crate::{forward, reads, streams, terminal, watches, writes};

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let ways = Ways::Tunnelled;
    let trials = [
        registration::trials(fixture), // long ones, which should not be the last to end
        outage::trials(fixture),
        forward::trials(fixture, ways),
        reads::trials(fixture, ways),
        writes::trials(fixture, ways),
        watches::trials(fixture, ways),
        streams::trials(fixture, ways),
        terminal::trials(fixture, ways),
    ];
    trials.into_iter().flatten().collect()
}
