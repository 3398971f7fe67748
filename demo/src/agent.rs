//! The agent of a member that is reached through nothing else. It can be killed, and started again.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tunnel_agent::Agent;

/// How long an agent may take to link and to find its API server: both are on this machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a running agent. Another one each time.
pub type Start = dyn Fn() -> Result<Agent> + Send + Sync;

/// The agent, while there is one. All of it blocks for a moment.
pub struct Lifeline {
    start: Box<Start>,
    agent: Mutex<Option<Agent>>,
}

// === impl Lifeline ===

impl Lifeline {
    /// Starts the agent and waits until it is linked.
    pub fn start(start: Box<Start>) -> Result<Self> {
        let lifeline = Self { start, agent: Mutex::new(None) };
        lifeline.restore()?;
        Ok(lifeline)
    }

    /// Ends the agent as a crash does: without notice, and open streams break off.
    pub fn cut(&self) {
        drop(self.agent.lock().take());
    }

    /// Starts it again and waits until it is linked.
    pub fn restore(&self) -> Result<()> {
        let agent = (self.start)().context("cannot start the agent")?;
        agent.wait_ready(PATIENCE).context("the agent is not ready")?;
        *self.agent.lock() = Some(agent);
        Ok(())
    }

    /// Ends it in order.
    pub fn stop(&self) -> Result<()> {
        let agent = self.agent.lock().take();
        agent.map_or(Ok(()), Agent::stop)
    }
}

impl fmt::Debug for Lifeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifeline").field("running", &self.agent.lock().is_some()).finish_non_exhaustive()
    }
}
