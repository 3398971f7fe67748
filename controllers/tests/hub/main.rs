//! The controllers on real control planes: a hub with a gateway, and a member.

mod accounts;
mod argocd;
mod cluster_api;
mod contexts;
mod fixture;
mod fleet;
mod hostile;
mod leaders;
mod lists;
mod monitoring;
mod names;
mod others;
mod page;
mod part;
mod placement;
mod program;
mod published;
mod refusals;
mod registration;
mod releases;
mod removal;
mod replica_sets;
mod rights;
mod scale;
mod stillness;
mod works;

use std::process::ExitCode;

use hub_tests::fixture::Fixture;

/// Concurrent tests: many wait a minute for a Lease, a back-off or a quiet period.
const THREADS: usize = 5;

fn main() -> ExitCode {
    // Members of these tests, which run here, have a connection for each of a thousand clusters.
    net::process::raise_open_files();
    let fixture = Fixture::with_threads(fixture::prepared, THREADS);
    // First those that block others, and those with the longest waits: this shortens the end of the
    // run.
    let trials = [
        fleet::trials(&fixture),
        works::trials(&fixture),
        placement::trials(&fixture),
        argocd::trials(&fixture),
        scale::trials(&fixture),
        registration::trials(&fixture),
        replica_sets::trials(&fixture),
        rights::trials(&fixture),
        accounts::trials(&fixture),
        cluster_api::trials(&fixture),
        contexts::trials(&fixture),
        hostile::trials(&fixture),
        leaders::trials(&fixture),
        lists::trials(&fixture),
        monitoring::trials(&fixture),
        names::trials(&fixture),
        others::trials(&fixture),
        page::trials(&fixture),
        published::trials(&fixture),
        refusals::trials(&fixture),
        releases::trials(&fixture),
        removal::trials(&fixture),
        stillness::trials(&fixture),
        works::keepers(&fixture),
    ];
    fixture.run(trials)
}
