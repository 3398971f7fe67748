//! Delivery of objects to clusters, as far as it is pure: what is done with each object, what is
//! reported of it, and which clusters get something next.
//!
//! Nothing here does IO, asks a clock or knows a client: objects are JSON as the API server sends
//! it, times are arguments, and what is to be done is an answer.
//!
//! # The machinery
//!
//! [`manifests`] reads what is wanted, in [`order`], each with its [`identity`]; [`strategy`] plans
//! the one request that brings an object to it; [`ownership`] and [`deletion`] say whose an object
//! is and what becomes of it; [`executor`] what has to be allowed before; [`feedback`] and
//! [`rules`] what is reported of it, by [`json_path`] and expressions; [`rollout`] which clusters
//! are next. None of these knows whose objects ask for it.
//!
//! # The front-ends
//!
//! [`work`] has Open Cluster Management's objects: what they say, in terms of the machinery, and
//! their statuses.
//!
//! # Different on purpose
//!
//! Results are those of Open Cluster Management v1.3's agent and controllers, except:
//!
//! - A PUT keeps what the member fills in and makes immutable ([`strategy`]); an object is not
//!   written again for what the member filled in, by server-side apply neither. What is empty is
//!   not what is missing.
//! - `ignoreFields` with a `JSONPath` or a pointer that cannot be read are an error, which upstream
//!   only logs, also where they count only until a change; a pointer beyond the end of a list leads
//!   nowhere. Of jq there is what names fields ([`jq`]): its interpreters run until they end, and
//!   here is no clock to stop one.
//! - What only the API server sets is dropped from manifests: UIDs, versions, `status`; so are
//!   owners. Finalizers are only created, never applied server-side. `stringData` becomes `data`.
//! - A part of an identity that cannot stand in a path is an error, in what was tracked too; so are
//!   a namespaced object without a namespace, a duplicate, and more than 100 levels, each in its
//!   entry. What a faulty manifest may mean stays tracked.
//! - An executor is refused a role of more than 100 items, `ignoreFields` for RBAC objects, and a
//!   binding without a role or with another role than the one that is there; what stays of a role
//!   by server-side apply is reviewed too. To read, it needs `get` alone.
//! - Of a `Secret`, neither feedback nor rules see the data.
//! - What is only read is not owned; a reference of an earlier time is taken off.
//! - A rule makes neither `Applied`, `Deleting` nor `StatusFeedbackSynced`, nor what is no type.
//! - A completion with an unreadable time is no reason to delete.
//! - A rollout strategy that cannot be read stays in its set's conditions; nothing is done.
//! - Works of a `ReplicaSet` have `Progressing` without a rule ([`work::default_progressing`]).
//!
//! # Limits
//!
//! | what | most |
//! |---|---|
//! | text of a path, of an expression in jq | 1 KiB |
//! | visits of one path, of one expression in jq | 20,000 |
//! | paths of `ignoreFields` of an object | 64 |
//! | feedback of an object | 128 paths, 256 KiB; a text 32 KiB, JSON 1 KiB |
//! | rules of an object | 64, 10,000,000 steps; an expression 1,000,000 |
//! | rules of a work | 64 different expressions, 50,000,000 steps |
//! | status of a work | 256 KiB of values, 256 KiB of messages |
//! | levels of a manifest | 100 |
//! | items of a role, for an executor | 100 |
//!
//! # Not here
//!
//! - How many manifests a work has is not bounded here: the hub bounds its size.
//! - A new RBAC object that another writer creates between review and apply goes unseen.
//! - A user that can set the annotation with the hash of `ignoreFields` on the member can hold an
//!   apply up.
//! - The fields of an [`identity::Identity`] are open: what is read is checked, what is put
//!   together in code is to be checked with [`identity::Identity::check`].

pub mod condition;
pub mod deletion;
pub mod executor;
pub mod feedback;
mod fields;
pub mod identity;
pub mod jq;
pub mod json_path;
pub mod manifests;
pub mod metadata;
pub mod order;
pub mod ownership;
pub mod rollout;
pub mod rules;
pub mod strategy;
pub mod work;
