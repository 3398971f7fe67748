//! TokenReview and SubjectAccessReview: identities and rights, as the test says.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Specs remembered of each kind; the oldest are forgotten first.
const MAX_SPECS: usize = 16 << 10;

/// The user behind a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenUser {
    /// The name.
    pub username: String,
    /// The UID, possibly empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Extra keys with their values.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The answer to a SubjectAccessReview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// `status.allowed`.
    pub allowed: bool,
    /// `status.denied`.
    pub denied: bool,
    /// `status.reason`.
    pub reason: String,
}

type Decide = Arc<dyn Fn(&Value) -> Decision + Send + Sync>;

#[derive(Default)]
pub(super) struct Reviews(Mutex<State>);

#[derive(Default)]
struct State {
    tokens: HashMap<String, TokenUser>,
    decide: Option<Decide>,
    token_specs: VecDeque<Value>,
    access_specs: VecDeque<Value>,
}

// === impl TokenUser ===

impl TokenUser {
    /// A user in these groups.
    pub fn new(username: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(ToString::to_string).collect();
        Self { username: username.to_owned(), groups, ..Self::default() }
    }
}

// === impl Decision ===

impl Decision {
    /// Allowed.
    pub fn allow() -> Self {
        Self { allowed: true, ..Self::default() }
    }

    /// Not allowed: the answer of RBAC for want of a rule.
    pub fn no_opinion(reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..Self::default() }
    }

    /// Denied.
    pub fn deny(reason: &str) -> Self {
        Self { denied: true, reason: reason.to_owned(), ..Self::default() }
    }
}

// === impl Reviews ===

impl Reviews {
    pub(super) fn add_token(&self, token: &str, user: TokenUser) {
        self.0.lock().tokens.insert(token.to_owned(), user);
    }

    pub(super) fn remove_token(&self, token: &str) {
        self.0.lock().tokens.remove(token);
    }

    pub(super) fn on_access(&self, decide: impl Fn(&Value) -> Decision + Send + Sync + 'static) {
        self.0.lock().decide = Some(Arc::new(decide));
    }

    pub(super) fn token_specs(&self) -> Vec<Value> {
        self.0.lock().token_specs.iter().cloned().collect()
    }

    pub(super) fn access_specs(&self) -> Vec<Value> {
        self.0.lock().access_specs.iter().cloned().collect()
    }

    /// Fills in the status of a TokenReview.
    pub(super) fn review_token(&self, mut review: Value) -> Value {
        let mut state = self.0.lock();
        remember(&mut state.token_specs, &review["spec"]);
        let user = review["spec"]["token"].as_str().and_then(|token| state.tokens.get(token));
        review["status"] = match user {
            Some(user) => {
                let mut status =
                    json!({"authenticated": true, "user": {"username": user.username, "groups": user.groups}});
                if !user.uid.is_empty() {
                    status["user"]["uid"] = user.uid.clone().into();
                }
                if !user.extra.is_empty() {
                    status["user"]["extra"] = json!(user.extra);
                }
                if let Some(audiences) = review["spec"].get("audiences") {
                    status["audiences"] = audiences.clone();
                }
                status
            }
            None => json!({"user": {}, "error": "[invalid bearer token, token lookup failed]"}),
        };
        review
    }

    /// Fills in the status of a SubjectAccessReview.
    pub(super) fn review_access(&self, mut review: Value) -> Value {
        let mut state = self.0.lock();
        remember(&mut state.access_specs, &review["spec"]);
        let decide = state.decide.clone();
        drop(state); // the function may take long, or ask the hub
        let decision = decide.map_or_else(Decision::default, |decide| decide(&review["spec"]));
        let mut status = json!({"allowed": decision.allowed});
        if decision.denied {
            status["denied"] = true.into();
        }
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        review["status"] = status;
        review
    }
}

impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviews").field("tokens", &self.0.lock().tokens.len()).finish_non_exhaustive()
    }
}

fn remember(specs: &mut VecDeque<Value>, spec: &Value) {
    specs.push_back(spec.clone());
    if specs.len() > MAX_SPECS {
        specs.pop_front();
    }
}
