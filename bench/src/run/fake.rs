//! A scenario that measures nothing, for tests of the runner and the report.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::contender::Contender;
use crate::figure::{Axis, Figure, Goal, Sample, Target};
use crate::scenario::{About, Scenario};

pub const ABOUT: About = About {
    name: "fake",
    title: "Requests that nobody sends",
    method: "Nothing is sent over no connections, and nothing is counted.",
    figures: &[Figure::new("cpu", "CPU µs per request", 1), Figure::new("rate", "requests/s", 0)],
    goals: &[],
    axis: None,
};

/// The behaviour of a contender.
#[derive(Clone, Copy)]
pub enum Act {
    /// Its samples have this figure.
    Measure(f64),
    /// Only this many times.
    FailAfter(usize),
    Panic,
    Skip(&'static str),
    /// It cannot be started.
    Break(&'static str),
}

#[derive(Clone, Default)]
pub struct Fake {
    pub acts: Vec<(Target, Act)>,
    pub goals: &'static [Goal],
    pub axis: Option<Axis>,
    /// The measured targets in order, with their times.
    pub seen: Rc<RefCell<Vec<(Target, Duration)>>>,
}

// === impl Fake ===

impl Fake {
    pub fn new(acts: impl IntoIterator<Item = (Target, Act)>) -> Self {
        Self { acts: acts.into_iter().collect(), ..Self::default() }
    }

    fn contender(&self, target: Target, act: Act) -> Contender {
        let seen = Rc::clone(&self.seen);
        let mut left = match act {
            Act::Skip(reason) => return Contender::skipped(target, reason),
            Act::Break(reason) => {
                return Contender::new::<fn(Duration) -> Result<Sample>>(target, Err(anyhow::anyhow!(reason)));
            }
            Act::FailAfter(times) => times,
            Act::Measure(_) | Act::Panic => usize::MAX,
        };
        let value = if let Act::Measure(value) = act { value } else { 1.0 };
        Contender::ready(target, move |time: Duration| {
            seen.borrow_mut().push((target, time));
            assert!(!matches!(act, Act::Panic), "at {target}");
            let Some(less) = left.checked_sub(1) else { bail!("it broke") };
            left = less;
            Ok(Sample::from([("cpu", value), ("rate", 1000.0 / value)]))
        })
    }
}

impl From<Fake> for Scenario {
    fn from(fake: Fake) -> Self {
        let about = About { goals: fake.goals, axis: fake.axis, ..ABOUT };
        Self::new(about, move |_| Ok(fake.acts.iter().map(|(target, act)| fake.contender(target, *act)).collect()))
    }
}
