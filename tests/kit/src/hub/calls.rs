//! Which calls were made, and which are to fail.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use parking_lot::Mutex;

use super::resource::Resource;
use crate::wait::{Gate, Signal};

/// Request lines remembered; the oldest are forgotten first.
const MAX_REQUESTS: usize = 16 << 10;

/// A kind of call to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// GET of one object.
    Get(Resource),
    /// GET of a collection.
    List(Resource),
    /// GET of a collection with `watch`.
    Watch(Resource),
    /// POST, PUT, PATCH or DELETE.
    Write(Resource),
    /// POST of a TokenReview.
    TokenReview,
    /// POST of a SubjectAccessReview.
    AccessReview,
    /// GET of the list of API groups.
    Groups,
    /// Anything else.
    Other,
}

/// An outcome of a call instead of its answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// A Status with this code.
    Status(u16),
    /// 429 as priority and fairness answers it: no Status, and in the header the seconds to wait.
    Busy(u16),
    /// An answer that is no JSON.
    Garbage,
    /// This status, content type and body.
    Answer(u16, &'static str, Bytes),
    /// No answer ever.
    Hang,
    /// The proper answer, this much later (tokio time).
    Delay(Duration),
    /// The proper answer, once the gate is open.
    Until(Gate),
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    signal: Signal,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<Call, usize>,
    /// Each with the number of calls that it still concerns, if limited.
    faults: HashMap<Call, (Fault, Option<usize>)>,
    requests: VecDeque<String>,
    user_agents: BTreeSet<String>,
}

// === impl Calls ===

impl Calls {
    /// Counts a call; returns the fault ordered for it.
    pub(super) fn enter(&self, call: Call, request: String) -> Option<Fault> {
        let mut state = self.state.lock();
        *state.counts.entry(call).or_default() += 1;
        state.requests.push_back(request);
        if state.requests.len() > MAX_REQUESTS {
            state.requests.pop_front();
        }
        let fault = state.take_fault(call);
        drop(state);
        self.signal.notify();
        fault
    }

    pub(super) fn count(&self, call: Call) -> usize {
        self.state.lock().counts.get(&call).copied().unwrap_or_default()
    }

    pub(super) async fn reached(&self, call: Call, times: usize) {
        let reached = || (self.count(call) >= times).then_some(());
        self.signal.until(format_args!("{times} calls of {call:?}"), reached).await;
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.state.lock().requests.iter().cloned().collect()
    }

    /// Remembers how a caller called itself; nothing is remembered as nothing.
    pub(super) fn heard_from(&self, user_agent: Option<&HeaderValue>) {
        let name = user_agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        self.state.lock().user_agents.insert(name.to_owned());
    }

    pub(super) fn user_agents(&self) -> Vec<String> {
        self.state.lock().user_agents.iter().cloned().collect()
    }

    pub(super) fn fail(&self, call: Call, fault: Fault, times: Option<usize>) {
        self.state.lock().faults.insert(call, (fault, times));
    }

    pub(super) fn heal(&self, call: Call) {
        self.state.lock().faults.remove(&call);
    }
}

// === impl State ===

impl State {
    fn take_fault(&mut self, call: Call) -> Option<Fault> {
        let (fault, times) = self.faults.get_mut(&call)?;
        let fault = fault.clone();
        match times {
            None => Some(fault),
            Some(0) => None,
            Some(left) => {
                *left -= 1;
                Some(fault)
            }
        }
    }
}
