//! Brings an object to the wanted state: at most one request, by a strategy.
//!
//! | strategy | no object | existing object |
//! |---|---|---|
//! | [`Strategy::Update`] | created | replaced where it differs; labels and owners are merged |
//! | [`Strategy::CreateOnly`] | created | only our owner reference |
//! | [`Strategy::ServerSideApply`] | applied | applied, unless it is known that it was |
//! | [`Strategy::ReadOnly`] | | only read; our owner reference is removed |

mod carried;
mod compare;
mod go;
mod ignore;
mod managed;
mod server_side;
mod update;

pub use self::compare::{AnswerHashes, Known, alike};
pub use self::ignore::{Ignore, IgnoreError, When};
pub use self::server_side::{CONFIG_HASH, FIELD_MANAGER, ServerSide};

use serde_json::{Value as Json, json};

use crate::metadata;
use crate::ownership::{Claim, Owner};

#[derive(Debug, Clone, PartialEq)]
pub enum Strategy {
    Update,
    CreateOnly,
    ServerSideApply(ServerSide),
    ReadOnly,
}

/// The wanted state of one object, how to reach it, and what is known of the object.
#[derive(Debug, Clone, Copy)]
pub struct DesiredObject<'a> {
    /// The manifest as [`crate::manifests::read`] cleaned it.
    pub object: &'a Json,
    pub owner: &'a Owner,
    pub claim: Claim,
    pub strategy: &'a Strategy,
    /// What is known from before.
    pub known: Known,
}

/// The request to make.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `POST`.
    Create(Json),
    /// `PUT`, with the version that was seen: after a conflict, plan again.
    Replace(Json),
    /// `PATCH` by server-side apply. It does not have the owner reference: [`Owner::patch`] of the
    /// answer says whether that is missing. If it conflicts with others' fields, stop until
    /// something changes.
    Apply {
        object: Json,
        manager: String,
        force: bool,
    },
    /// A JSON merge patch of only the owner references.
    PatchOwners(Json),
    /// `GET`, to report the existing object; nothing is written.
    Read,
    Nothing,
    /// It cannot be done.
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("fieldManager {0:?} must start with \"{FIELD_MANAGER}\", and be printable and no longer than 128 bytes")]
    FieldManager(String),
    /// Reported with another reason than other errors.
    #[error("{0}")]
    Ignore(IgnoreError),
}

/// What to do; `observed` is the existing object.
pub fn plan(wanted: &DesiredObject<'_>, observed: Option<&Json>) -> Action {
    match wanted.strategy {
        // It was ours before: with our reference, it would be deleted with us.
        Strategy::ReadOnly => match observed.filter(|observed| wanted.owner.owns(observed)) {
            Some(ours) => wanted.owner.patch(ours, Claim::Release).map_or(Action::Read, Action::PatchOwners),
            None => Action::Read,
        },
        Strategy::ServerSideApply(config) => config.plan(wanted, observed),
        Strategy::Update | Strategy::CreateOnly => match observed {
            None => Action::Create(created(wanted)),
            Some(observed) if *wanted.strategy == Strategy::CreateOnly => owners(wanted, observed),
            Some(observed) => update::plan(wanted, observed),
        },
    }
}

fn created(wanted: &DesiredObject<'_>) -> Json {
    let mut object = wanted.object.clone();
    metadata::clean(&mut object);
    if let Some(metadata) = crate::fields::metadata(&mut object) {
        metadata.remove("ownerReferences");
        if wanted.claim == Claim::Own {
            metadata.insert("ownerReferences".to_owned(), json!([wanted.owner.reference()]));
        }
    }
    object
}

fn owners(wanted: &DesiredObject<'_>, observed: &Json) -> Action {
    wanted.owner.patch(observed, wanted.claim).map_or(Action::Nothing, Action::PatchOwners)
}

#[cfg(test)]
mod tests;
