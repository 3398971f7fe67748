//! The status, with the same fields that upstream's agent writes (v0.10.0,
//! `setManagedServiceAccountSuccessStatus`).

use api::conditions;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::Account;
use crate::service_account_token::ServiceAccountToken;

const SECRET_CREATED: &str = "SecretCreated";
const TOKEN_REPORTED: &str = "TokenReported";
const TOKEN_REPORT_FAILED: &str = "TokenReportFailed";
/// Tolerated difference, in seconds, between a token's own time of issue and the time that
/// upstream's agent reports: the agent has its own clock, and wrote the Secret in between.
const CLOSE: i64 = 60;
/// Limit of a condition's message in bytes; it contains the member's text.
const LONGEST_MESSAGE: usize = 1024;

// === impl Account ===

impl Account {
    /// Its status with this token in the Secret. `None` if the status is already so. `is_new`: the
    /// token was issued just now.
    pub fn reported(&self, token: &ServiceAccountToken, is_new: bool, now_seconds: i64) -> Option<Value> {
        let mut status = self.status.clone();
        let mut conditions = conditions(&status);
        set(&mut conditions, SECRET_CREATED, ("True", SECRET_CREATED, ""), now_seconds);
        set(&mut conditions, TOKEN_REPORTED, ("True", TOKEN_REPORTED, ""), now_seconds);
        status["conditions"] = conditions.into();
        let is_told = |path: &str, moment: i64| {
            let told = status.pointer(path).and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
            let slack = if is_new { 0 } else { CLOSE };
            told.is_some_and(|told| told.as_second().abs_diff(moment) <= slack.unsigned_abs())
        };
        let is_ended = is_told("/expirationTimestamp", token.ends);
        let is_named = status["tokenSecretRef"]["name"] == *self.name;
        if !is_ended || !is_named || !is_told("/tokenSecretRef/lastRefreshTimestamp", token.issued) {
            status["expirationTimestamp"] = moment(token.ends).into();
            status["tokenSecretRef"] = json!({"lastRefreshTimestamp": moment(token.issued), "name": self.name});
        }
        (status != self.status).then_some(status)
    }

    /// Its status after a failure that a person must correct. Earlier reports stay. `None` if the
    /// status is already so.
    pub fn failed(&self, why: &str, now_seconds: i64) -> Option<Value> {
        let mut status = self.status.clone();
        let mut conditions = conditions(&status);
        let why = &why[..why.floor_char_boundary(LONGEST_MESSAGE)];
        set(&mut conditions, TOKEN_REPORTED, ("False", TOKEN_REPORT_FAILED, why), now_seconds);
        status["conditions"] = conditions.into();
        (status != self.status).then_some(status)
    }
}

fn conditions(status: &Value) -> Vec<Value> {
    status["conditions"].as_array().cloned().unwrap_or_default()
}

fn set(conditions: &mut Vec<Value>, kind: &str, (status, reason, message): (&str, &str, &str), now_seconds: i64) {
    let condition = json!({"message": message, "reason": reason, "status": status, "type": kind});
    conditions::set(conditions, condition, &moment(now_seconds));
}

/// A time in the format of `metav1.Time`. A time outside the calendar becomes its last.
fn moment(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    crate::moment(time)
}
