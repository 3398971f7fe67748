//! Rounds: every target of a scenario once a round, in turns, so that what the machine does meanwhile meets them all.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::args::{Args, Command};
use crate::figure::{Sample, Target};
use crate::ground::Ground;
use crate::scenario::{self, Missing, Scenario};

/// What a scenario gave.
pub struct Outcome {
    pub scenario: Box<dyn Scenario>,
    /// In the order of the scenario's contenders.
    pub targets: Vec<Measured>,
}

/// A target's samples, one a round, or why there are none.
pub struct Measured {
    pub target: Target,
    pub samples: Result<Vec<Sample>, Missing>,
}

/// What the command line asks for.
pub fn run(args: &Args) -> Result<()> {
    let mut scenarios = scenario::all();
    if let Command::Run { scenarios: wanted } = &args.command {
        for name in wanted {
            ensure!(
                scenarios.iter().any(|scenario| scenario.name() == name),
                "no scenario \"{name}\": see `bench list`"
            );
        }
        scenarios.retain(|scenario| wanted.iter().any(|name| name == scenario.name()));
    }
    let smoke = matches!(args.command, Command::Smoke);
    let (rounds, time) =
        if smoke { (1, Duration::from_millis(300)) } else { (args.rounds, Duration::from_secs(args.seconds)) };
    let mut ground = Ground::new(args.programs.clone(), smoke)?;
    let outcomes = scenarios.into_iter().map(|scenario| measure(scenario, &mut ground, rounds, time));
    let _outcomes = outcomes.collect::<Vec<_>>();
    Ok(())
}

fn measure(scenario: Box<dyn Scenario>, ground: &mut Ground, rounds: usize, time: Duration) -> Outcome {
    let contenders = match scenario.contenders(ground) {
        Ok(contenders) => contenders,
        Err(_error) => Vec::new(),
    };
    let (mut loads, mut targets) = (Vec::new(), Vec::new());
    for contender in contenders {
        let (load, samples) = match contender.load {
            Ok(load) => (Some(load), Ok(Vec::new())),
            Err(reason) => (None, Err(reason)),
        };
        loads.push(load);
        targets.push(Measured { target: contender.target, samples });
    }
    for _ in 0..rounds {
        for (load, measured) in loads.iter_mut().zip(&mut targets) {
            let (Some(load), Ok(samples)) = (load, &mut measured.samples) else { continue };
            match load.measure(time) {
                Ok(sample) => samples.push(sample),
                Err(error) => measured.samples = Err(Missing::of(&error)),
            }
        }
    }
    Outcome { scenario, targets }
}
