//! What is logged while a test runs.

use std::fmt::Write as _;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest};
use tracing::{Event, Metadata, Subscriber};

/// Lines of this thread that are no debugging, as `LEVEL text`.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<String>>>);

// === impl Lines ===

impl Lines {
    /// Until the guard is dropped.
    pub fn collect() -> (Self, DefaultGuard) {
        // Without a subscriber of all threads, a place that logs first while another thread begins
        // to collect may be taken for one that nobody listens to, for good.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| drop(tracing::subscriber::set_global_default(Undecided)));
        let lines = Self::default();
        (lines.clone(), tracing::subscriber::set_default(lines))
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Listens to nothing, and has every place that logs ask each time.
struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn event(&self, _: &Event<'_>) {}

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().push(text.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Level, and the values of all fields.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {value:?}");
    }
}
