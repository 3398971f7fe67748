//! The weather: the present fault, and what callers may expect meanwhile.

use tokio::sync::watch;

/// The weather at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now {
    /// Number of this stretch of weather; the next one's is greater.
    pub number: u64,
    /// The fault, or the time between two.
    pub what: String,
    /// A GET must succeed at the second try at the latest.
    pub is_gentle: bool,
}

#[derive(Debug)]
pub struct Weather(watch::Sender<Now>);

// === impl Weather ===

impl Weather {
    pub fn change(&self, what: &str, is_gentle: bool) {
        self.0.send_modify(|now| *now = Now { number: now.number + 1, what: what.to_owned(), is_gentle });
    }

    pub fn now(&self) -> Now {
        self.0.borrow().clone()
    }

    /// Ready whenever it changes.
    pub fn changes(&self) -> watch::Receiver<Now> {
        self.0.subscribe()
    }
}

impl Default for Weather {
    fn default() -> Self {
        Self(watch::Sender::new(Now { number: 0, what: "start".into(), is_gentle: false }))
    }
}
