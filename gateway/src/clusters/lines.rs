//! Collects log lines during a test.

use std::fmt::Write as _;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest};
use tracing::{Event, Metadata, Subscriber};

/// Lines that this thread logs at INFO or above, as `LEVEL text`. None: collects nothing.
#[derive(Clone)]
pub struct Lines(Option<Arc<Mutex<Vec<String>>>>);

// === impl Lines ===

impl Lines {
    /// Collects until the guard is dropped.
    pub fn collect() -> (Self, DefaultGuard) {
        // Without a global subscriber, a callsite that logs first while another thread begins to
        // collect may be cached as disabled for good.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| drop(tracing::subscriber::set_global_default(Self(None))));
        let lines = Self(Some(Arc::default()));
        (lines.clone(), tracing::subscriber::set_default(lines))
    }

    pub fn take(&self) -> Vec<String> {
        self.0.as_ref().map(|lines| std::mem::take(&mut *lines.lock())).unwrap_or_default()
    }
}

impl Subscriber for Lines {
    /// Makes every callsite ask each time.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.is_some() && metadata.is_event() && *metadata.level() <= tracing::Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        if let Some(lines) = &self.0 {
            lines.lock().push(text.0);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The level, and the values of all fields.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {value:?}");
    }
}
