//! Reports made by the runner from scenarios that measure nothing.

use std::time::Duration;

use super::*;
use crate::figure::{DIRECT, GO, Goal, NGINX, OURS, Target};
use crate::given::Programs;
use crate::run::fake::{Act, Fake};
use crate::run::{Progress, measure};
use crate::size::Size;
use crate::testbed::Testbed;

const GOALS: &[Goal] = &[
    Goal::ratio("cpu", OURS, GO).must(Bound::AtMost(1.0 / 12.0)).aim(Bound::AtMost(0.05)),
    Goal::ratio("cpu", OURS, NGINX).must(Bound::AtMost(0.85)),
    Goal::ratio("rate", OURS, GO).over(DIRECT).aim(Bound::AtLeast(6.0)),
    Goal::value("cpu", OURS).aim(Bound::AtMost(10.0)),
];
const RUN: (usize, f64) = (3, 5.0);

/// A section of three rounds.
pub fn section(acts: impl IntoIterator<Item = (Target, Act)>) -> Section {
    section_of(Fake { goals: GOALS, ..Fake::new(acts) })
}

pub fn section_of(fake: Fake) -> Section {
    let (rounds, seconds) = RUN;
    let plan = Plan { rounds, time: Duration::from_secs_f64(seconds), smoke: false };
    let mut testbed = Testbed::new(Programs::default(), true, Size::SMOKE).unwrap();
    let outcome = measure(fake.into(), &mut testbed, plan, &mut Progress::silent());
    let run =
        Run { at: "2026-01-31 12:00".to_owned(), commit: "0123456789ab".to_owned(), rounds, seconds, smoke: false };
    Section::new(&outcome, run)
}

/// A report with a target that is skipped, and one that fails on the way.
pub fn report() -> Report {
    let machine = machine::Machine {
        processor: "A Processor".to_owned(),
        cores: 2,
        virtualized: true,
        memory: 7.75,
        kernel: "6.1.0".to_owned(),
        system: "A System 12".to_owned(),
        load: 0.25,
    };
    let version =
        |program: &str, version: &str| programs::Version { program: program.to_owned(), version: version.to_owned() };
    let acts = [
        (DIRECT, Act::Measure(12.0)),
        (OURS, Act::Measure(16.0)),
        (GO, Act::Measure(290.0)),
        (NGINX, Act::Skip("nginx is not here (package nginx-light)")),
        ("haproxy", Act::FailAfter(2)),
    ];
    let programs = vec![version("nginx", "absent"), version("h2load", "h2load nghttp2/1.52.0")];
    Report { machine, programs, scenarios: vec![section(acts)] }
}

pub fn smoke() -> Report {
    let mut report = report();
    report.scenarios[0].run.smoke = true;
    report
}

#[test]
fn the_report_reads_like_this() {
    insta::assert_snapshot!(markdown::whole(&report(), markdown::Layout { level: 2, charts: "charts" }));
}

#[test]
fn a_scenario_that_was_not_measured_says_why() {
    let mut report = report();
    let reason = "etcd did not start\nlog: no space left";
    report.scenarios[0].missing = Some(Gap { reason: reason.to_owned(), failed: true });
    let text = markdown::whole(&report, markdown::Layout { level: 2, charts: "charts" });
    assert!(text.ends_with("\nFailed: etcd did not start log: no space left\n"), "{text}");
}

#[test]
fn scenarios_of_several_runs_say_of_which() {
    let mut report = report();
    let mut other = report.scenarios[0].clone();
    (other.name, other.run.commit) = ("other".to_owned(), "ba9876543210".to_owned());
    report.put(other);
    let text = markdown::whole(&report, markdown::Layout { level: 2, charts: "charts" });
    assert!(text.contains("of several runs"), "{text}");
    assert_eq!(text.matches("UTC, commit ba9876543210, 3 rounds").count(), 1, "{text}");
}

#[test]
fn what_is_written_is_read_again_and_a_scenario_that_is_measured_again_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = report();
    save(&report, directory.path()).unwrap();
    assert_eq!(load(directory.path()).unwrap(), report);
    assert!(directory.path().join("charts/fake.svg").is_file());
    report.put(section([(OURS, Act::Measure(1.0))]));
    assert_eq!((report.scenarios.len(), report.scenarios[0].targets.len()), (1, 1));
}

#[test]
fn a_report_is_added_to_on_the_machine_it_is_of_and_remembers_programs_that_are_not_here_now() {
    let directory = tempfile::tempdir().unwrap();
    save(&report(), directory.path()).unwrap();
    let other = Report::continued(directory.path(), &Programs::default()).unwrap_err();
    assert!(other.to_string().contains("of another machine"), "{other:#}");

    let mut here = Report { machine: machine::Machine::here(), ..report() };
    let peer = here.programs.iter_mut().next().unwrap();
    (peer.program, peer.version) = ("cluster-gateway in Go".to_owned(), "a version".to_owned());
    save(&here, directory.path()).unwrap();
    let continued = Report::continued(directory.path(), &Programs::default()).unwrap();
    let version = |name: &str| continued.programs.iter().find(|known| known.program == name).unwrap().version.clone();
    assert_eq!(version("cluster-gateway in Go"), "a version");
    assert!(version("rustc").starts_with("rustc 1."));
    assert_eq!(continued.scenarios, here.scenarios);
}
