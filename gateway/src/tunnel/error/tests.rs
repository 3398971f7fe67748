use std::fmt::Write as _;
use std::io;

use net::dial::DialError;

use super::*;

fn refusal(hop: Hop, reason: Reason, message: &str) -> Refusal {
    Refusal::new(hop, reason, message)
}

fn refused_connection() -> Unreachable {
    let source = io::Error::from_raw_os_error(111);
    Unreachable::Unlinked(Arc::new(DialError::Connect { address: "10.0.0.3:8090".into(), source }.into()))
}

fn silent() -> Unreachable {
    Unreachable::Silent { address: "10.0.0.4:8090".parse().unwrap(), linked: false }
}

fn slow() -> Unreachable {
    Unreachable::Silent { address: "10.0.0.4:8090".parse().unwrap(), linked: true }
}

fn not_linked() -> Refusal {
    refusal(Hop::Server, Reason::NoLink, "cluster berlin has no link here now")
}

fn missing(here: bool, refused: Vec<Refusal>, unreachable: Vec<Unreachable>) -> TunnelError {
    Missing { here: here.then(not_linked), refused, unreachable, ..Missing::default() }.into()
}

fn of_cause(hop: Hop, reason: Reason, message: &str) -> TunnelError {
    Cause::Refused(refusal(hop, reason, message)).into()
}

/// The possible answers of each hop, in the order of the hops.
pub fn every_kind() -> Vec<TunnelError> {
    let limit = || refusal(Hop::Server, Reason::Limit, "20000 streams of cluster berlin are open");
    let draining = || refusal(Hop::Server, Reason::Draining, "the last link of cluster berlin is being drained");
    let unknown = DialError::Resolve { host: "tunnel.example".into(), source: io::Error::other("no such host") };
    let address = "10.0.0.3:8090".parse().unwrap();
    let tls = Unlinked::Tls { address, source: io::Error::other("received fatal alert: CertificateExpired") };
    vec![
        Missing { nowhere: vec![unknown], ..Missing::default() }.into(),
        missing(false, vec![], vec![refused_connection(), silent()]),
        missing(false, vec![], vec![silent()]),
        missing(false, vec![], vec![slow()]),
        missing(false, vec![], vec![Unreachable::Unlinked(Arc::new(tls))]),
        missing(false, vec![], vec![Unreachable::Lost(address, Causes::of("the link was lost"))]),
        missing(true, vec![], vec![]),
        missing(false, vec![not_linked()], vec![]),
        missing(false, vec![not_linked(), not_linked(), not_linked()], vec![]),
        missing(true, vec![not_linked(), not_linked()], vec![]),
        missing(false, vec![not_linked()], vec![refused_connection(), silent()]),
        missing(false, vec![not_linked(), limit()], vec![]),
        missing(false, vec![not_linked(), draining()], vec![]),
        of_cause(Hop::Server, Reason::Forbidden, "the certificate is not of the frontends' CA"),
        of_cause(Hop::Server, Reason::Malformed, "no such path"),
        of_cause(Hop::Server, Reason::AgentTimeout, "the agent did not answer within 10s"),
        of_cause(Hop::Agent, Reason::Forbidden, "10.9.9.9:22 is not allowed here"),
        of_cause(Hop::Agent, Reason::Lookup, "lookup apiserver.local: no such host"),
        of_cause(Hop::Agent, Reason::Unreachable, "dial tcp 127.0.0.1:6443: connection refused"),
        of_cause(Hop::Agent, Reason::DialTimeout, "dial tcp 10.1.2.3:6443: no answer within 9s"),
    ]
}

#[test]
fn each_failure_names_its_hop_its_cause_and_what_to_do() {
    let mut all = String::new();
    for error in every_kind() {
        let time = if error.is_timeout() { ", timeout" } else { "" };
        let again = if error.is_momentary() { ", momentary" } else { "" };
        let member = if error.is_of_the_member() { ", of the member" } else { "" };
        let (outcome, hop, short) = (error.outcome(), error.hop(), error.in_short());
        writeln!(all, "{outcome} at {hop}{time}{again}{member}: {short}\n  {error}\n").unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_time_out_is_called_so_once() {
    for message in ["dial tcp 10.1.2.3:6443: i/o timeout", "dial tcp 10.1.2.3:6443: no answer within 9s"] {
        let text = of_cause(Hop::Agent, Reason::DialTimeout, message).to_string();
        assert_eq!(text.matches("i/o timeout").count(), 1, "{text}");
    }
}

#[test]
fn a_cluster_that_was_reached_a_moment_ago_is_worth_another_try() {
    let is_momentary = |was_reached, refused| {
        let missing = Missing { refused, ..Missing::of(was_reached) };
        TunnelError::from(missing).is_momentary()
    };
    assert!(is_momentary(true, vec![not_linked()]));
    assert!(!is_momentary(false, vec![not_linked()]));
    assert!(!is_momentary(true, vec![]), "no server could be asked");
}

#[test]
fn that_nobody_is_linked_says_nothing_of_the_member() {
    assert!(!missing(false, vec![not_linked()], vec![]).is_of_the_member());
    assert!(!missing(false, vec![], vec![silent()]).is_of_the_member());
    assert!(of_cause(Hop::Agent, Reason::Unreachable, "connection refused").is_of_the_member());
}
