//! `kubectl clusters` on real control planes: a hub with a gateway, and members.

mod care;
mod chromium;
mod contexts;
mod dashboard;
mod each;
mod expired;
mod fixture;
mod foreign;
mod get;
mod go_gateway;
mod install;
mod interrupted;
mod join;
mod list;
mod mistakes;
mod pictures;
mod placement;
mod steps;
mod terminal;
mod tunnel;

use std::process::ExitCode;

use hub_tests::fixture::Fixture;
use hub_tests::testbed::Testbed;

fn main() -> ExitCode {
    let fixture = Fixture::new(Testbed::start);
    let trials = [
        tunnel::trials(&fixture),
        mistakes::trials(&fixture),
        expired::trials(&fixture),
        interrupted::trials(&fixture),
        foreign::trials(&fixture),
        install::trials(&fixture),
        terminal::trials(&fixture),
        care::trials(&fixture),
        contexts::trials(&fixture),
        dashboard::trials(&fixture),
        pictures::trials(&fixture),
        placement::trials(&fixture),
        list::trials(&fixture),
        get::trials(&fixture),
        each::trials(&fixture),
        join::trials(&fixture),
        go_gateway::trials(&fixture),
        steps::trials(&fixture),
    ];
    fixture.run(trials)
}
