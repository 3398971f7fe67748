//! A member that nobody can dial is used like any other: kubectl's commands through a tunnel-server
//! and through a gateway that is its own, compared with the member; and who may be an agent.

mod outage;
mod registration;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::compare::Ways;
use crate::stage::Stage;
use crate::{forward, reads, streams, terminal, watches, writes};

pub(crate) fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    let ways = Ways::Tunnelled;
    let trials = [
        registration::trials(stage), // long ones, which should not be the last to end
        outage::trials(stage),
        forward::trials(stage, ways),
        reads::trials(stage, ways),
        writes::trials(stage, ways),
        watches::trials(stage, ways),
        streams::trials(stage, ways),
        terminal::trials(stage, ways),
    ];
    trials.into_iter().flatten().collect()
}
