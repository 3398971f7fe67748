//! Waiting for a moment to the microsecond: tokio's own timers round up to milliseconds.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Result;
use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// timerfd(2).
pub struct Alarm(AsyncFd<OwnedFd>);

// === impl Alarm ===

impl Alarm {
    /// To be called on a runtime.
    #[expect(
        deprecated,
        reason = "its successor is unsafe for the sake of types that do not own their descriptor; this one does"
    )]
    pub fn new() -> Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self(AsyncFd::new(timer)?))
    }

    /// Returns at once when it is past.
    pub async fn wait_until(&self, at: Instant) -> Result<()> {
        let pause = at.saturating_duration_since(Instant::now());
        if pause == Duration::ZERO {
            return Ok(());
        }
        let timespec = |pause: Duration| -> Result<Timespec> {
            Ok(Timespec { tv_sec: pause.as_secs().try_into()?, tv_nsec: pause.subsec_nanos().into() })
        };
        let timer = Itimerspec { it_interval: timespec(Duration::ZERO)?, it_value: timespec(pause)? };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &timer)?;
        loop {
            let mut ready = self.0.readable().await?;
            match read(&self.0, &mut [0; 8]) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_goes_off_when_it_is_due_and_again() {
        let alarm = Alarm::new().unwrap();
        for pause in [Duration::from_micros(300), Duration::from_millis(3)] {
            let due = Instant::now() + pause;
            alarm.wait_until(due).await.unwrap();
            assert!(Instant::now() >= due);
        }
        alarm.wait_until(Instant::now()).await.unwrap();
    }
}
