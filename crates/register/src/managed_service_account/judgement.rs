//! Whether the token of a `ManagedServiceAccount` is good, and for how long.

use super::{Account, GROUP, KIND, LABEL, LEAST_USE, Refusal, SHORTEST, SecretObject};
use crate::service_account_token::ServiceAccountToken;

const TOKEN: &str = "token";
const CA: &str = "ca.crt";

/// The ServiceAccount of that name on the member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberAccount {
    pub uid: String,
    /// Whether it has the label.
    pub is_managed: bool,
}

/// The verdict on the Secret and the member's ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Request a token.
    Due(Why),
    /// Keep using the present token, until `due`.
    Good {
        token: ServiceAccountToken,
        due: i64,
    },
    Refused(Refusal),
    /// The Secret belonged to a `ManagedServiceAccount` of the same name that is gone. The hub's
    /// garbage collector removes it.
    Predecessor,
}

/// Why a token is requested, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    NoSecret,
    NoAccount,
    /// It cannot be read, or its CA is missing.
    Unreadable,
    OtherSubject,
    /// The ServiceAccount was deleted and recreated: the member refuses tokens of the previous one.
    /// Upstream's agent uses a `TokenReview`, whose cache accepts them for some seconds.
    OtherAccount,
    Old,
}

// === impl Account ===

impl Account {
    /// Judges by the Secret of its name alone. `None`: the member's ServiceAccount must be judged,
    /// too.
    pub fn judge_secret(&self, secret: Option<&SecretObject>) -> Option<Judgement> {
        let secret = secret?;
        let not_own = Some(Judgement::Refused(Refusal::SecretNotOwn(self.place())));
        let is_managed = secret.labels.get(LABEL).is_some_and(|value| value == "true");
        if !is_managed || !secret.is_opaque() {
            return not_own;
        }
        let mut owners =
            secret.owners.iter().filter(|owner| (owner.group.as_str(), owner.kind.as_str()) == (GROUP, KIND));
        match owners.find(|owner| owner.name == self.name) {
            Some(owner) if owner.uid == self.uid => None,
            Some(_) => Some(Judgement::Predecessor),
            None => not_own,
        }
    }

    /// Judges by its own Secret and the member's ServiceAccount.
    pub fn judge(&self, secret: Option<&SecretObject>, account: Option<&MemberAccount>, now_seconds: i64) -> Judgement {
        if let Some(other) = self.judge_secret(secret) {
            return other;
        }
        let Some(account) = account else { return Judgement::Due(Why::NoAccount) };
        if let Err(refusal) = self.check_account(account) {
            return Judgement::Refused(refusal);
        }
        let Some(secret) = secret else { return Judgement::Due(Why::NoSecret) };
        let token = secret.value(TOKEN).and_then(ServiceAccountToken::read);
        match token {
            Some(token) if token.subject != self.subject() => Judgement::Due(Why::OtherSubject),
            Some(token) if token.uid != account.uid => Judgement::Due(Why::OtherAccount),
            Some(token) if due(&token) < now_seconds => Judgement::Due(Why::Old),
            Some(token) if secret.value(CA).is_some() => Judgement::Good { due: due(&token), token },
            _ => Judgement::Due(Why::Unreadable),
        }
    }

    /// Whether the ServiceAccount's tokens may be stored on the hub.
    pub fn check_account(&self, account: &MemberAccount) -> Result<(), Refusal> {
        if account.is_managed {
            return Ok(());
        }
        Err(Refusal::AccountNotOwn { cluster: self.namespace.clone(), name: self.name.clone() })
    }

    /// Reads a token that was issued at `now_seconds` by our clock. Refuses one that would be due
    /// again at once.
    pub fn check_issued(
        &self,
        token: &[u8],
        account: &MemberAccount,
        now_seconds: i64,
    ) -> Result<(ServiceAccountToken, i64), Refusal> {
        let cluster = || self.namespace.clone();
        let token = ServiceAccountToken::read(token).ok_or_else(|| Refusal::Unreadable(cluster()))?;
        if token.subject != self.subject() || token.uid != account.uid {
            return Err(Refusal::OtherAccount(cluster()));
        }
        if token.life() < SHORTEST {
            return Err(Refusal::TooShort { cluster: cluster(), life: token.life() });
        }
        if due(&token) < now_seconds.saturating_add(LEAST_USE) {
            return Err(Refusal::Stale(cluster()));
        }
        Ok((token.clone(), due(&token)))
    }
}

/// After four fifths of the granted life, as upstream does.
fn due(token: &ServiceAccountToken) -> i64 {
    token.issued.saturating_add(token.life() / 5 * 4)
}
