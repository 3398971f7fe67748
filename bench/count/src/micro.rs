//! Single operations of a request's path, without network and hub: for callgrind, which counts
//! their instructions, and for a clock.

mod admission;
mod request;
mod streams;

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

/// Something that can be done again and again.
pub struct Operation {
    pub name: &'static str,
    /// Description of one operation.
    pub what: &'static str,
    /// Does this many of them.
    run: Box<dyn FnMut(u64)>,
}

/// Makes one ready.
pub type Make = fn() -> Operation;

/// All operations, each made on first use: some need a runtime with tasks of their own.
pub fn all() -> Vec<(&'static str, Make)> {
    vec![
        ("route", request::route),
        ("route-dialects", request::route_among_dialects),
        ("route-kcp", request::route_kcp),
        ("route-user-server", request::route_user_server),
        ("route-karmada", request::route_karmada),
        ("rewrite", request::rewrite),
        ("answer", request::answer),
        ("status", request::status),
        ("untraced", request::untraced),
        ("traced", request::traced),
        ("admit-token", admission::token),
        ("admit-front-proxy", admission::front_proxy),
        ("pump", streams::pumped),
        ("connect", streams::connect),
        ("link", streams::linked),
        ("splice", streams::spliced),
    ]
}

// === impl Operation ===

impl Operation {
    fn new(name: &'static str, what: &'static str, mut once: impl FnMut() + 'static) -> Self {
        Self { name, what, run: Box::new(move |count| (0..count).for_each(|_| once())) }
    }

    /// An operation that waits, on a runtime of its own.
    fn waiting<S: 'static>(
        name: &'static str,
        what: &'static str,
        start: impl AsyncFnOnce() -> S,
        mut once: impl AsyncFnMut(&mut S) + 'static,
    ) -> Self {
        let runtime = runtime();
        let mut state = runtime.block_on(start());
        let run = move |count| {
            runtime.block_on(async {
                for _ in 0..count {
                    once(&mut state).await;
                }
            });
        };
        Self { name, what, run: Box::new(run) }
    }

    /// Does `count` of them, uncounted.
    pub fn warm_up(&mut self, count: u64) {
        (self.run)(count);
    }

    /// Does `count` of them. A symbol of its own: callgrind counts between its entry and its
    /// return.
    #[inline(never)]
    pub fn run(&mut self, count: u64) {
        (self.run)(count);
    }

    /// How long `count` of them take.
    pub fn time(&mut self, count: u64) -> Duration {
        let start = Instant::now();
        self.run(count);
        start.elapsed()
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_works_again_and_again() {
        for (name, make) in all() {
            let mut operation = make();
            assert_eq!(operation.name, name);
            operation.run(3);
            operation.run(2);
        }
    }
}
