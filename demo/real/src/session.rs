//! The demo on real control planes from start to end, on a thread of its own: everything in it
//! blocks, some of it for minutes.
//!
//! The owner of the thread can ask it to end; it checks for that between two steps and while it
//! waits for the user.

use std::{
    convert::Infallible,
    io::Write,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread,
};

use anyhow::{Context as _, Result};
use hub_tests::tools::Tools;
use tokio::sync::oneshot;

use super::{Real, RealReport};
use demo::report::Tally;

/// When a session ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// After the steps.
    Steps,
    /// When it is asked to.
    Asked,
}

/// A running session.
#[derive(Debug)]
pub struct Session {
    stop: Sender<Infallible>,
    outcome: oneshot::Receiver<Result<Tally>>,
}

/// Reports when the other end wants no more.
#[derive(Debug)]
pub(super) struct Stop(Receiver<Infallible>);

// === impl Session ===

impl Session {
    /// Starts one, whose text goes to `out`.
    pub fn start(ending: Ending, out: impl Write + Send + 'static) -> Result<Self> {
        let (stop, stopped) = channel();
        let (sender, outcome) = oneshot::channel();
        let run = move || {
            // The receiver is gone: the result is not needed.
            drop(sender.send(run(ending, RealReport::new(out), &Stop(stopped))));
        };
        thread::Builder::new().name("real".to_owned()).spawn(run).context("cannot start a thread")?;
        Ok(Self { stop, outcome })
    }

    /// Waits for its end: how the steps went, or why it did not come to them. May be called again
    /// if it was cancelled.
    pub async fn outcome(&mut self) -> Result<Tally> {
        (&mut self.outcome).await.context("the session panicked")?
    }

    /// Asks it to end, and waits for that.
    pub async fn stop(self) -> Result<Tally> {
        drop(self.stop);
        self.outcome.await.context("the session panicked")?
    }
}

// === impl Stop ===

impl Stop {
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.0.try_recv(), Err(TryRecvError::Disconnected))
    }

    fn wait(&self) {
        let Err(_) = self.0.recv();
    }
}

fn run<W: Write>(ending: Ending, mut report: RealReport<W>, stop: &Stop) -> Result<Tally> {
    report.prepare()?;
    Tools::prepare().context("cannot build the programs of a control plane")?;
    report.prepared()?;
    if stop.is_asked() {
        return Ok(Tally::default());
    }
    let mut real = Real::start()?;
    report.arrangement(&real)?;
    let tally = report.steps(&real, || stop.is_asked())?;
    if tally.failed > 0 {
        report.logs(&real.testbed.keep())?;
    }
    if ending == Ending::Asked && !stop.is_asked() {
        report.invite(&real)?;
        stop.wait();
    }
    Ok(tally)
}
