//! A wide-area network between agent and tunnel-server, 100 ms there and back: bulk data is at
//! least 80 % as fast as on a direct TCP connection over the same distance, and an echo takes less
//! than 5 ms longer.
//!
//! A binary of its own, because it wants a network namespace of its own (see [`network`]), and the
//! machine for its measures.

mod far;
mod measure;
mod near;
mod network;
mod slow;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;

use self::measure::{Direction, Session};
use self::near::Near;

/// Of the throughput of a direct connection.
const FRACTION: f64 = 0.8;
/// Added to an echo, in seconds.
const ADDED: f64 = 0.005;

/// Both ends, started by the first test that runs.
#[derive(Default)]
struct Fixture(Mutex<Option<Result<Near, String>>>);

fn main() -> ExitCode {
    if let Some(code) = network::elsewhere() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1); // they measure
    let fixture = Arc::new(Fixture::default());
    let trials = vec![
        trial(&fixture, "bulk data towards the caller", |near| bulk(near, Direction::Down)),
        trial(&fixture, "bulk data towards the member", |near| bulk(near, Direction::Up)),
        trial(&fixture, "an echo", echo),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(fixture: &Arc<Fixture>, name: &str, run: fn(&Near) -> Result<()>) -> Trial {
    let fixture = fixture.clone();
    Trial::test(format!("over 100 ms: {name}"), move || {
        let mut near = fixture.0.lock();
        let near = near.get_or_insert_with(|| Near::start().map_err(|error| format!("{error:#}")));
        let near = near.as_ref().map_err(|error| anyhow!("there is nothing to measure: {error}"));
        near.and_then(|near| attempts(|| run(near))).map_err(|error| Failed::from(format!("{error:#}")))
    })
}

/// Measures until one run is as it should be: a tunnel that is too slow is so each time, a busy
/// machine is not.
fn attempts(measure: impl Fn() -> Result<()>) -> Result<()> {
    const ATTEMPTS: usize = 3;
    let mut outcome = measure();
    for _ in 1..ATTEMPTS {
        if outcome.is_ok() {
            break;
        }
        outcome = measure();
    }
    outcome
}

#[allow(clippy::print_stdout, reason = "what was measured belongs to the output")]
fn bulk(near: &Near, direction: Direction) -> Result<()> {
    let direct = Session::warmed(near.direct()?, direction)?.rate()?;
    let tunnelled = Session::warmed(near.tunnelled()?, direction)?.rate()?;
    let fraction = tunnelled / direct;
    println!("{direction:?}: {tunnelled:.1} MB/s of {direct:.1} MB/s directly ({:.0} %), {near}", fraction * 100.0);
    ensure!(fraction >= FRACTION, "{tunnelled:.1} MB/s through the tunnel, {direct:.1} MB/s directly ({near})");
    Ok(())
}

#[allow(clippy::print_stdout, reason = "what was measured belongs to the output")]
fn echo(near: &Near) -> Result<()> {
    let direct = Session::new(near.direct()?).round_trip()?;
    let tunnelled = Session::new(near.tunnelled()?).round_trip()?;
    println!("echo: {:.1} ms, {:.1} ms directly, {near}", tunnelled * 1000.0, direct * 1000.0);
    ensure!(direct >= slow::ROUND_TRIP.as_secs_f64(), "the way is shorter than it should be: {direct} s ({near})");
    ensure!(tunnelled < direct + ADDED, "{tunnelled} s through the tunnel, {direct} s directly ({near})");
    Ok(())
}
