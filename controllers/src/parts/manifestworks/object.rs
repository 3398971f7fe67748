//! Brings one object of a work to its wanted state.

mod action;
mod remembered;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::side::Side;
use delivery::executor::Executor;
use delivery::manifests::{Fault, Manifest};
use delivery::ownership::{Claim, Owner};
use delivery::strategy::{Action, AnswerHashes, DesiredObject, Known, Strategy, plan};
use delivery::work::{Availability, Failed, ManifestWorkSpec, is_owned, options};
use net::backoff::Backoff;
use parking_lot::Mutex;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::contest::By;
use super::member::{At, MemberError, OWN};
use super::target::Target;
use crate::metrics::{Act, Delivery};

pub use self::remembered::Remembered;

/// Attempts of one pass, if the member answers with conflicts.
const TRIES: usize = 3;
/// Wait after these attempts, and the number of passes in a row before it becomes longer: what
/// looks like another client may be a webhook or a quota.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);
const CONFLICTS: u32 = 3;
/// Wait until a missing definition may exist.
const COMES: Duration = Duration::from_secs(5);
/// Attempts with a missing definition in a row before they become rare.
const EAGER: u32 = 12;
/// The interval after that.
const RARE: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_mins(4));
/// Wait until a right may have been granted.
pub const GRANTED: Duration = Duration::from_mins(1);
/// Interval of attempts that the member refuses.
const REFUSED: Backoff = Backoff::doubling(Duration::from_secs(5), Duration::from_mins(4));

/// Path of an object's version.
const VERSION: &str = "/metadata/resourceVersion";
/// Limit of the time that the member may ask for before the next attempt (`Retry-After`).
const LONGEST_OBJECT_REST: Duration = Duration::from_mins(4);

/// The outcome for an object.
#[derive(Debug)]
pub struct Outcome {
    pub result: Result<(), Failed>,
    /// Where that failed.
    pub hop: &'static str,
    pub availability: Availability,
    pub observed: Option<Json>,
    pub is_owned: bool,
    pub remembered: Remembered,
    /// The client that changes it back.
    pub contested_by: Option<By>,
    /// A note for the status of an applied object.
    pub note: Option<String>,
    /// Others own fields of it, which server-side apply does not take.
    pub is_conflict: bool,
}

/// The parameters for all objects of a work.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub target: &'a Target,
    /// Name of the work.
    pub work: &'a str,
    pub spec: &'a ManifestWorkSpec,
    pub owner: &'a Owner,
    pub executor: Option<&'a Executor>,
    /// Whether there is room to remember what is seen of objects.
    pub is_kept: bool,
    pub metrics: &'a Delivery,
}

/// The processing of one object, once.
struct Look<'a> {
    setting: Setting<'a>,
    manifest: &'a Manifest,
    object: &'a Json,
    strategy: Strategy,
    is_owned: bool,
    before: Remembered,
    was_applied: bool,
    /// Whether the member has said what exists.
    is_read: AtomicBool,
    /// The last other writer of the fields to repair, found before the repair: after it, no field
    /// may be that client's any more.
    undone_by: Mutex<Option<By>>,
}

/// How an attempt ended, except in success.
enum Stop {
    Reported(Failed),
    /// The executor may not do it.
    Denied(String),
    /// By server-side apply, it would be the same again until something changes.
    Conflict(String),
    /// The object stays as it is for now.
    Later(Duration),
    /// The object is another one than was read; the member's words.
    Again(String),
    Member(MemberError),
}

/// Brings an object to its wanted state. `was_applied`: this manifest was applied, at this
/// generation.
///
/// # Errors
///
/// Fails if the member did not answer: then nothing is known about the object.
pub async fn settle(
    setting: Setting<'_>,
    manifest: &Manifest,
    before: Remembered,
    was_applied: bool,
) -> Result<Outcome, MemberError> {
    let identity = manifest.identity();
    let object = match &manifest.object {
        Ok(object) => object,
        Err(fault) => return Ok(faulty(fault, before)),
    };
    let strategy = match options(&identity, &setting.spec.manifest_configs).strategy() {
        Ok(strategy) => strategy,
        Err(invalid) => return Ok(failed(Failed::Other(invalid.to_string()), None, before, Availability::Incomplete)),
    };
    let is_owned = is_owned(&identity, setting.spec.delete_option.as_ref(), &strategy);
    let (is_read, undone_by) = (AtomicBool::new(false), Mutex::default());
    let look = Look { setting, manifest, object, strategy, is_owned, before, was_applied, is_read, undone_by };
    let mut said = String::new();
    for _ in 0..TRIES {
        let mut observed = None;
        match look.once(&mut observed).await {
            Ok(remembered) => return Ok(look.outcome(Ok(()), observed, remembered)),
            Err(Stop::Again(why)) => said = why,
            Err(Stop::Later(wait)) => {
                let remembered = Remembered { again: Some(Instant::now() + wait), ..before };
                return Ok(look.outcome(Ok(()), observed, remembered));
            }
            Err(Stop::Reported(why)) => return Ok(look.outcome_failed(why, OWN, None, observed)),
            Err(Stop::Denied(why)) => {
                return Ok(look.outcome_failed(Failed::Other(why), Side::Member.as_str(), Some(GRANTED), observed));
            }
            Err(Stop::Conflict(why)) => {
                let outcome = look.outcome_failed(Failed::Other(why), Side::Member.as_str(), None, observed);
                return Ok(Outcome { is_conflict: true, ..outcome });
            }
            Err(Stop::Member(error)) => return look.judged(error, observed).await,
        }
    }
    let why = Failed::Other(format!("the member answered with a conflict each time: {said}"));
    Ok(look.outcome_failed(why, Side::Member.as_str(), Some(raced(before.failures)), None))
}

/// Wait before the next attempt after conflicts.
fn raced(failures: u32) -> Duration {
    failures.checked_sub(CONFLICTS).map_or(AFTER_CONFLICT, |more| REFUSED.wait(more))
}

fn faulty(fault: &Fault, before: Remembered) -> Outcome {
    let again = match fault {
        Fault::UnknownKind(_) => Some(comes(before.failures)),
        Fault::Undiscovered(_) => Some(REFUSED.wait(before.failures)),
        _ => None,
    };
    failed(Failed::Other(fault.to_string()), again, before, Availability::Incomplete)
}

/// Wait before the next attempt with a missing definition.
fn comes(failures: u32) -> Duration {
    failures.checked_sub(EAGER).map_or(COMES, |more| RARE.wait(more))
}

fn failed(why: Failed, again: Option<Duration>, before: Remembered, availability: Availability) -> Outcome {
    let again = again.map(|wait| Instant::now() + wait);
    let remembered = Remembered { failures: before.failures.saturating_add(1), again, ..before };
    let (is_owned, is_conflict) = (true, false);
    let (observed, contested_by, note) = (None, None, None);
    let result = Err(why);
    Outcome { result, hop: OWN, availability, observed, is_owned, remembered, contested_by, note, is_conflict }
}

/// What a member's refusal is of an object.
pub struct Judged {
    pub why: String,
    hop: &'static str,
    /// Until it is asked again.
    pub again: Duration,
}

/// The reason of a member's refusal, and the wait before the next attempt.
///
/// # Errors
///
/// It says nothing of the object.
pub async fn judged(target: &Target, error: MemberError, failures: u32) -> Result<Judged, MemberError> {
    match error {
        MemberError::Refused(_) => {}
        // One object may hang, for example in a webhook. This request shows whether the member
        // hangs.
        MemberError::Late(_) => target.member.is_there().await?,
        other => return Err(other),
    }
    let again = if error.is_kind_missing() {
        target.kinds.forget();
        comes(failures)
    } else if error.is_forbidden() {
        GRANTED
    } else {
        REFUSED.wait(failures).max(error.retry_after().min(LONGEST_OBJECT_REST))
    };
    Ok(Judged { why: error.to_string(), hop: error.hop(), again })
}

// === impl Look ===

impl Look<'_> {
    fn at(&self, identity: &delivery::identity::Identity) -> AtOwned {
        AtOwned { identity: identity.clone(), version: self.manifest.version.clone() }
    }

    /// Reads the object, and does what is needed. `found` is the object in the end.
    async fn once(&self, found: &mut Option<Json>) -> Result<Remembered, Stop> {
        self.is_read.store(false, Ordering::Relaxed);
        let (target, at) = (self.setting.target, self.at(&self.manifest.identity()));
        if let Some(executor) = self.setting.executor {
            let verdict =
                target.review(self.setting.work, executor, self.manifest, self.is_owned, &self.strategy).await?;
            verdict.map_err(Stop::Denied)?;
        }
        *found = target.member.get(at.get()).await?;
        self.is_read.store(true, Ordering::Relaxed);
        if let Some(executor) = self.setting.executor {
            let (work, strategy) = (self.setting.work, &self.strategy);
            let verdict =
                target.review_escalation(work, executor, self.manifest, self.object, found.as_ref(), strategy);
            let verdict = verdict.await?;
            verdict.map_err(Stop::Denied)?;
        }
        let claim = if self.is_owned { Claim::Own } else { Claim::Release };
        let (object, owner) = (self.object, self.setting.owner);
        let wanted = DesiredObject { object, owner, claim, strategy: &self.strategy, known: self.known() };
        let (action, written) = match (plan(&wanted, found.as_ref()), found.as_ref()) {
            (Action::Nothing, Some(observed)) => self.unseen(&wanted, observed, &at).await?,
            (action, _) => (action, None),
        };
        let by = (is_change(&action) && self.was_applied).then(|| By::of(found.as_ref(), owner));
        self.undone_by.lock().clone_from(&by);
        self.check_contest(&action)?;
        let (is_written, is_nothing) = (is_repair(&action), action == Action::Nothing);
        let mut is_changed = true;
        let answer = match written {
            Some(answer) => Some(self.counted(Act::Update, Ok(answer))?),
            None => self.carry_out(action, &at).await?,
        };
        if let Some(answer) = answer {
            is_changed = found.as_ref().is_none_or(|before| is_other(before, &answer));
            *found = Some(answer);
        }
        let mut remembered = Remembered { failures: 0, again: None, said: None, ..self.before };
        match by.filter(|_| is_changed) {
            Some(by) => {
                remembered.contest.repaired(Instant::now());
                remembered.is_of_work = matches!(by, By::Work(_));
            }
            None => *self.undone_by.lock() = None,
        }
        if is_written || (is_nothing && self.strategy == Strategy::Update) {
            remembered.seen =
                found.as_ref().filter(|_| self.is_all_compared()).map(|answer| AnswerHashes::of(self.object, answer));
        }
        Ok(remembered)
    }

    /// The repair of an object that this process has not seen yet, and that has more than its
    /// manifest: the member says what of that it fills in itself, without a write. If it wrote the
    /// object all the same, also its answer.
    async fn unseen(
        &self,
        wanted: &DesiredObject<'_>,
        observed: &Json,
        at: &AtOwned,
    ) -> Result<(Action, Option<Json>), Stop> {
        if !self.setting.is_kept || wanted.known != Known::Applied || self.strategy != Strategy::Update {
            return Ok((Action::Nothing, None));
        }
        let replacement = plan(&DesiredObject { known: Known::Nothing, ..*wanted }, Some(observed));
        let Action::Replace(object) = &replacement else { return Ok((Action::Nothing, None)) };
        self.check_contest(&replacement)?;
        match self.setting.target.member.try_replace(at.get(), object).await {
            Ok(answer) if is_stored(observed, &answer) => Ok((replacement, Some(answer))),
            Ok(answer) if AnswerHashes::of(self.object, &answer) == AnswerHashes::of(self.object, observed) => {
                Ok((Action::Nothing, None))
            }
            Ok(_) => Ok((replacement, None)),
            // Because of immutable fields, or of a webhook that cannot try, for example.
            Err(MemberError::Refused(_) | MemberError::Late(_)) => Ok((Action::Nothing, None)),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether all that the object has besides the manifest is the member's doing: no fields are
    /// left to others (`ignoreFields`).
    fn is_all_compared(&self) -> bool {
        !matches!(&self.strategy, Strategy::ServerSideApply(config) if !config.ignore.is_empty())
    }

    fn known(&self) -> Known {
        match self.before.seen {
            Some(seen) => Known::Answered(seen),
            None if self.was_applied => Known::Applied,
            None => Known::Nothing,
        }
    }

    /// Refuses to repair it now if it was repaired too often.
    fn check_contest(&self, action: &Action) -> Result<(), Stop> {
        let is_repair = self.was_applied && is_change(action);
        match self.before.contest.wait(Instant::now()).filter(|_| is_repair) {
            Some(wait) => Err(Stop::Later(wait)),
            None => Ok(()),
        }
    }
}

/// Whether the action changes the object's content.
fn is_repair(action: &Action) -> bool {
    matches!(action, Action::Create(_) | Action::Replace(_) | Action::Apply { .. })
}

/// Whether the action changes the object's content or owners.
fn is_change(action: &Action) -> bool {
    is_repair(action) || matches!(action, Action::PatchOwners(_))
}

/// Whether the answer to a dry run shows that the object was stored. A dry run may answer with the
/// next generation, but not with another version: it names the version that was read.
fn is_stored(before: &Json, answer: &Json) -> bool {
    answer.pointer(VERSION).is_some() && is_other(before, answer)
}

/// Whether an answer has another version than the object before: a write without a change reverts
/// nothing.
fn is_other(before: &Json, answer: &Json) -> bool {
    let after = answer.pointer(VERSION);
    after.is_none() || before.pointer(VERSION) != after
}

/// The location of an object.
struct AtOwned {
    identity: delivery::identity::Identity,
    version: String,
}

// === impl AtOwned ===

impl AtOwned {
    fn get(&self) -> At<'_> {
        At { identity: &self.identity, version: &self.version }
    }
}

impl From<MemberError> for Stop {
    fn from(error: MemberError) -> Self {
        Self::Member(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_that_others_hold_and_change_is_tried_less_and_less_often() {
        let (mut remembered, begin, mut tries) = (Remembered::default(), Instant::now(), 0);
        // It changes each second.
        while begin.elapsed() < Duration::from_mins(10) {
            if remembered.rests(1, Instant::now()).is_none() {
                remembered.conflicted(1, Instant::now());
                tries += 1;
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!((4..=7).contains(&tries), "{tries}");
        assert!(remembered.rests(2, Instant::now()).is_none(), "another generation is tried at once");
    }

    #[test]
    fn owners_that_somebody_changes_back_are_a_contest_too() {
        assert!(is_change(&Action::PatchOwners(Json::Null)) && is_change(&Action::Create(Json::Null)));
        assert!(!is_change(&Action::Nothing) && !is_repair(&Action::PatchOwners(Json::Null)));
    }

    #[test]
    fn what_always_conflicts_is_tried_less_and_less_often() {
        assert_eq!((raced(0), raced(CONFLICTS - 1)), (AFTER_CONFLICT, AFTER_CONFLICT));
        assert!(raced(CONFLICTS + 10) >= Duration::from_mins(2));
    }

    #[test]
    fn a_definition_that_does_not_come_is_looked_for_less_often() {
        assert_eq!((comes(0), comes(EAGER - 1)), (COMES, COMES));
        assert!(comes(EAGER + 10) >= Duration::from_mins(2));
    }
}
