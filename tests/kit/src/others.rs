//! How much of the machine other processes take: a time is a measure of the program only where
//! nothing else runs.

use std::collections::HashMap;
use std::time::Duration;
use std::{fs, io};

/// The same on all Linux (`CLK_TCK` of proc(5)).
const TICK_MILLIS: u64 = 10;
/// Least part of the machine that is left to a test, in limits of time.
const LEAST_SHARE: f64 = 0.1;

/// CPU time at one moment, in ticks (proc(5)).
pub struct Moment {
    /// Time of all processors, idle or not.
    all: u64,
    busy: u64,
    /// Time of this process and all that it started.
    own: u64,
}

/// Processor time of a process, and its parent.
struct Process {
    parent: u32,
    ticks: u64,
}

// === impl Moment ===

impl Moment {
    /// The processor time until now.
    pub fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
        let line = line.ok_or_else(|| io::Error::other("no line of all processors"))?;
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().map_err(io::Error::other)?;
        let all = ticks.iter().sum();
        // The fourth and the fifth are those of idle processors.
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Ok(Self { all, busy: all - idle, own: own()? })
    }

    /// The part of the machine that others have taken since, from 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "ticks of minutes")]
    pub fn others(&self) -> io::Result<f64> {
        let now = Self::now()?;
        let others = (now.busy - self.busy).saturating_sub(now.own.saturating_sub(self.own));
        Ok(others as f64 / (now.all - self.all).max(1) as f64)
    }

    /// A limit of time for what was done since, extended by what others have taken of the machine
    /// meanwhile: twice as long where they took half of it, ten times at most.
    ///
    /// Others are processes beside this one and those that it started. Tests of the same process
    /// are none: compare with something that waits for the same machine, in the same run.
    pub fn extended(&self, limit: Duration) -> io::Result<Duration> {
        Ok(extended(limit, self.others()?))
    }

    /// CPU time that this process and all that it started have taken since, whatever others took.
    pub fn spent(&self) -> io::Result<Duration> {
        Ok(Duration::from_millis(TICK_MILLIS * own()?.saturating_sub(self.own)))
    }
}

fn extended(limit: Duration, others: f64) -> Duration {
    limit.div_f64((1.0 - others).max(LEAST_SHARE))
}

/// Ended processes are in the count of the parent that waited for them.
fn own() -> io::Result<u64> {
    let processes: HashMap<u32, Process> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|id| Some((id, process(id)?)))
        .collect();
    let is_own = |id: u32| {
        let mut above = Some(id);
        while let Some(id) = above.filter(|id| *id != std::process::id()) {
            above = processes.get(&id).map(|process| process.parent);
        }
        above.is_some()
    };
    Ok(processes.iter().filter(|(id, _)| is_own(**id)).map(|(_, process)| process.ticks).sum())
}

/// `None`: it has just ended.
fn process(id: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_grows_by_what_others_take_and_not_without_end() {
        let second = Duration::from_secs(1);
        let grown = [0.0, 0.5, 0.95, 1.0].map(|others| extended(second, others).as_secs_f64().round());
        assert_eq!(grown.map(Duration::from_secs_f64), [1, 2, 10, 10].map(Duration::from_secs));
    }
}
