//! Faults of the processes, one at a time.

mod limited;

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use hub_tests::wait;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::report::Report;
use crate::world::{Target, Validity, World};

/// Limit for one of our programs to end after SIGTERM, which takes delay and drain, and for
/// anything else that takes no time on an idle machine.
const END: Duration = Duration::from_mins(2);

/// A recovery that takes longer is reported.
const SLOW: Duration = Duration::from_secs(5);
/// Validity of certificates that are to expire: enough for all to be in use before.
const EXPIRE: Duration = Duration::from_secs(6);
/// How long the hub is away, independent of a run's lengths.
const AWAY: Duration = Duration::from_secs(30);
/// A link is given up after 20 s of silence.
const FROZEN: Duration = Duration::from_secs(22);
/// For the requests that callers begin when the weather changes to be in flight.
const UNDER_WAY: Duration = Duration::from_millis(40);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL, and started again.
    Kill(Target),
    /// SIGSTOP for some seconds, then SIGCONT.
    Freeze(Target),
    /// SIGTERM and a new process, one after another. Programs that are not ours get SIGKILL after
    /// some seconds: kube-apiserver waits for a minute for requests in flight.
    Replace(Target),
    /// New certificates of the same authorities.
    Renew,
    /// New authorities too.
    RenewAuthorities,
    /// Certificates expire before there are new ones.
    Expire,
    /// The hub's API server is gone for a while.
    HubAway,
    /// It is gone for half a minute, and an agent is frozen meanwhile for longer than its links may
    /// be without a word.
    Silence,
    /// No room for the audit log.
    DiskFull,
    /// No descriptors left to a gateway.
    Descriptors,
}

/// Durations of faults.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Longest freeze.
    pub freeze: Duration,
    /// The hub is away.
    pub away: Duration,
    /// A disk is full, or there are no descriptors.
    pub limited: Duration,
    /// From SIGTERM to SIGKILL, for programs that are not ours.
    pub grace: Duration,
}

/// Carries out faults.
pub struct Hand<'a> {
    pub world: &'a mut World,
    pub report: &'a Report,
    pub runtime: &'a Handle,
    pub dice: Dice,
    pub lengths: Lengths,
}

// === impl Fault ===

impl Fault {
    pub fn all() -> Vec<Self> {
        let each = Target::ALL.into_iter();
        let of_targets = each.flat_map(|target| [Self::Kill(target), Self::Freeze(target), Self::Replace(target)]);
        let others = [
            Self::Renew,
            Self::RenewAuthorities,
            Self::Expire,
            Self::HubAway,
            Self::Silence,
            Self::DiskFull,
            Self::Descriptors,
        ];
        of_targets.chain(others).collect()
    }

    /// Whether callers may not notice, but for one repetition.
    pub fn is_gentle(self) -> bool {
        match self {
            Self::Replace(target) => target.is_ours(),
            Self::Renew | Self::RenewAuthorities | Self::DiskFull => true,
            Self::Kill(_) | Self::Freeze(_) | Self::Expire | Self::HubAway | Self::Silence | Self::Descriptors => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(target) => write!(f, "kill-{}", target.name()),
            Self::Freeze(target) => write!(f, "freeze-{}", target.name()),
            Self::Replace(target) => write!(f, "replace-{}", target.name()),
            Self::Renew => f.write_str("renew"),
            Self::RenewAuthorities => f.write_str("renew-authorities"),
            Self::Expire => f.write_str("expire"),
            Self::HubAway => f.write_str("hub-away"),
            Self::Silence => f.write_str("silence"),
            Self::DiskFull => f.write_str("disk-full"),
            Self::Descriptors => f.write_str("descriptors"),
        }
    }
}

// === impl Hand ===

impl Hand<'_> {
    /// Does it, and waits until everything works again.
    pub fn run(&mut self, fault: Fault) -> Result<()> {
        let number = self.number(fault);
        let name = format!("{fault} {number}");
        self.report.weather.change(&name, fault.is_gentle());
        self.pause(UNDER_WAY);
        let began = Instant::now();
        self.inflict(fault, number)?;
        let lasted = began.elapsed();
        self.report.weather.change(&format!("after {name}"), false);
        let last = self.world.settle(self.runtime)?;
        self.report.weather.change("nothing", false);
        self.report.done(&fault.to_string());
        let again = began.elapsed().saturating_sub(lasted);
        self.report.say(&format!("{name} took {lasted:.1?}, everything works {again:.1?} later"));
        if again > SLOW {
            self.report.say(&format!("what worked last: {last}"));
        }
        Ok(())
    }

    fn number(&mut self, fault: Fault) -> usize {
        let count = match fault {
            Fault::Kill(target) | Fault::Freeze(target) => target.count(),
            Fault::DiskFull | Fault::Descriptors => Target::Gateway.count(),
            Fault::Silence => Target::Agent.count(),
            _ => 1,
        };
        usize::try_from(self.dice.below(count as u64)).unwrap_or_default()
    }

    fn inflict(&mut self, fault: Fault, number: usize) -> Result<()> {
        match fault {
            Fault::Kill(target) => {
                self.kill(target, number)?;
                self.world.start_again(target, number)
            }
            Fault::Freeze(target) => {
                let length = Duration::from_secs(1 + self.dice.below(self.lengths.freeze.as_secs()));
                self.world.process(target, number).signal("STOP")?;
                self.pause(length);
                self.world.process(target, number).signal("CONT")
            }
            Fault::Replace(target) => self.replace(target),
            Fault::Renew => self.world.renew(Validity::Long),
            Fault::RenewAuthorities => self.world.renew_authorities(),
            Fault::Expire => {
                self.world.renew(Validity::Seconds(EXPIRE.as_secs().cast_signed()))?;
                self.pause(EXPIRE + self.lengths.limited);
                self.world.renew(Validity::Long)
            }
            Fault::HubAway => {
                self.kill(Target::HubServer, 0)?;
                self.pause(self.lengths.away);
                self.world.start_again(Target::HubServer, 0)
            }
            Fault::Silence => self.silence(number),
            Fault::DiskFull => self.disk_full(number),
            Fault::Descriptors => self.descriptors(number),
        }
    }

    fn pause(&self, length: Duration) {
        self.runtime.block_on(async { sleep(length).await });
    }

    fn kill(&mut self, target: Target, number: usize) -> Result<()> {
        self.world.process(target, number).signal("KILL")?;
        self.wait_end(target, number, END)
    }

    /// If there are several, the others serve meanwhile.
    fn replace(&mut self, target: Target) -> Result<()> {
        for number in 0..target.count() {
            if number > 0 {
                self.world.settle(self.runtime)?;
            }
            self.world.process(target, number).signal("TERM")?;
            let grace = if target.is_ours() { END } else { self.lengths.grace };
            let ended = self.wait_end(target, number, grace);
            if target.is_ours() {
                ended?;
            } else if ended.is_err() {
                self.kill(target, number)?;
            }
            self.world.start_again(target, number)?;
        }
        Ok(())
    }

    fn wait_end(&mut self, target: Target, number: usize, limit: Duration) -> Result<()> {
        let process = self.world.process(target, number);
        wait::until_true(&format!("the end of {} {number}", target.name()), limit, || Ok(process.check().is_err()))
    }

    /// The tunnel-servers have to give the links of the agent up while it says nothing.
    fn silence(&mut self, number: usize) -> Result<()> {
        let began = Instant::now();
        self.kill(Target::HubServer, 0)?;
        self.world.process(Target::Agent, number).signal("STOP")?;
        self.pause(FROZEN);
        let what = format!("the end of the links of agent {number}, which is silent");
        let given_up = wait::until_true(&what, END, || Ok(!self.world.has_links()));
        self.world.process(Target::Agent, number).signal("CONT")?;
        given_up?;
        self.pause(AWAY.saturating_sub(began.elapsed()));
        self.world.start_again(Target::HubServer, 0)
    }

    fn disk_full(&mut self, number: usize) -> Result<()> {
        let Some(disk) = self.world.disk(number)? else { bail!("there is no disk") };
        disk.fill()?;
        self.pause(self.lengths.limited);
        let before = disk.written()?;
        disk.free()?;
        wait::until_true("the audit log to go on", END, || {
            self.world.read_at(number, self.runtime)?; // or it may have nothing to write
            Ok(disk.written()? != before) // it may have begun anew
        })
    }
}
