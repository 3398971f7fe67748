//! Carries out what is to be done with an object, and says what came of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use delivery::ownership::Claim;
use delivery::strategy::Action;
use delivery::work::{Availability, Failed};
use serde_json::Value as Json;
use tokio::time::Instant;

use super::{AtOwned, Judged, Look, Outcome, Remembered, Stop, failed, judged};
use crate::metrics::{Act, Ended};
use crate::parts::manifestworks::contest::note;
use crate::parts::manifestworks::member::{MemberError, OWN};

impl Look<'_> {
    /// Carries out the action. Returns the resulting object, if something was written.
    pub(super) async fn carry_out(&self, action: Action, at: &AtOwned) -> Result<Option<Json>, Stop> {
        let member = &self.setting.target.member;
        match action {
            Action::Nothing | Action::Read => Ok(None),
            Action::Refused(refusal) => Err(Stop::Reported(Failed::from(&refusal))),
            Action::Create(object) => self.counted(Act::Create, member.create(at.get(), &object).await).map(Some),
            Action::Replace(object) => self.counted(Act::Update, member.replace(at.get(), &object).await).map(Some),
            Action::PatchOwners(change) => self.counted(Act::Patch, member.merge(at.get(), &change).await).map(Some),
            Action::Apply { object, manager, force } => {
                let answer = member.apply(at.get(), &object, &manager, force).await;
                let conflict = answer.as_ref().err().filter(|error| error.is_of_fields()).map(ToString::to_string);
                let answer = match (self.counted(Act::Apply, answer), conflict) {
                    (Err(_), Some(why)) => return Err(Stop::Conflict(why)),
                    (answer, _) => answer?,
                };
                let claim = if self.is_owned { Claim::Own } else { Claim::Release };
                let Some(change) = self.setting.owner.patch(&answer, claim) else { return Ok(Some(answer)) };
                self.counted(Act::Patch, member.merge(at.get(), &change).await).map(Some)
            }
        }
    }

    pub(super) fn counted(&self, act: Act, answer: Result<Json, MemberError>) -> Result<Json, Stop> {
        // The object existed a moment ago.
        let is_gone = |error: &MemberError| {
            matches!(act, Act::Update | Act::Patch) && error.is_missing() && !error.is_kind_missing()
        };
        let is_raced = answer.as_ref().is_err_and(|error| error.is_conflict() || is_gone(error));
        let ended = match &answer {
            Ok(_) => Ended::Done,
            Err(_) if is_raced => Ended::Conflict,
            Err(_) => Ended::Failed,
        };
        self.setting.metrics.acted(act, ended);
        answer.map_err(|error| if is_raced { Stop::Again(error.to_string()) } else { error.into() })
    }

    /// The outcome of a member's refusal.
    pub(super) async fn judged(&self, error: MemberError, observed: Option<Json>) -> Result<Outcome, MemberError> {
        let Judged { why, hop, again } = judged(self.setting.target, error, self.before.failures).await?;
        Ok(self.outcome_failed(Failed::Other(why), hop, Some(again), observed))
    }

    pub(super) fn outcome_failed(
        &self,
        why: Failed,
        hop: &'static str,
        again: Option<Duration>,
        observed: Option<Json>,
    ) -> Outcome {
        let availability = match (&observed, &why) {
            (Some(_), _) => Availability::Available,
            (None, _) if self.is_read.load(Ordering::Relaxed) => Availability::NotFound,
            (None, Failed::Other(why) | Failed::IgnoreFields(why)) => Availability::Unknown(why.clone()),
        };
        let one = failed(why, again, self.before, availability);
        Outcome { observed, hop, is_owned: self.is_owned, ..one }
    }

    pub(super) fn outcome(
        &self,
        result: Result<(), Failed>,
        observed: Option<Json>,
        mut remembered: Remembered,
    ) -> Outcome {
        let availability = if observed.is_some() { Availability::Available } else { Availability::NotFound };
        let now = Instant::now();
        let is_contested = remembered.contest.is_contested(now);
        let contested_by = self.undone_by.lock().take().filter(|_| is_contested);
        let rival = observed.as_ref().and_then(|object| self.setting.owner.rival(object));
        let note = rival.filter(|_| is_contested && remembered.is_of_work).map(note);
        if note.is_some() {
            // The note must not last longer than the contest.
            remembered.again = remembered.again.or(remembered.contest.ends(now));
        }
        let (is_owned, is_conflict) = (self.is_owned, false);
        Outcome { result, hop: OWN, availability, observed, is_owned, remembered, contested_by, note, is_conflict }
    }
}
