//! The pure part of delivering objects to clusters: what to do with each object, what to report of
//! it, and which clusters are next.
//!
//! Nothing here does IO, reads a clock or knows a client: objects are JSON as the API server sends
//! it, times are arguments, and actions are return values.
//!
//! # The machinery
//!
//! [`manifests`] parses the wanted objects, in [`order`], each with its [`identity`]; [`strategy`]
//! plans the one request that brings an object to the wanted state; [`ownership`] and [`deletion`]
//! say who owns an object and what happens to it; [`executor`] which rights are needed before;
//! [`feedback`] and [`rules`] what is reported of it, by [`json_path`] and expressions; [`rollout`]
//! which clusters are next. None of these knows which kind of object asks for it.
//!
//! # The front-ends
//!
//! [`work`] has Open Cluster Management's objects: their content, in terms of the machinery, and
//! their statuses.
//!
//! # Different on purpose
//!
//! Results are those of Open Cluster Management v1.3's agent and controllers, except:
//!
//! - A PUT keeps what the member fills in and makes immutable ([`strategy`]). What the member
//!   filled in causes no further write, not by server-side apply either. An empty value is not a
//!   missing one.
//! - `ignoreFields` with a `JSONPath` or a pointer that cannot be parsed are an error, which
//!   upstream only logs, even where they apply only until a change; a pointer beyond the end of a
//!   list leads nowhere. Of jq, only the part that names fields is supported ([`jq`]): jq's
//!   interpreters run until they end, and there is no clock here to stop one.
//! - Fields that only the API server sets are dropped from manifests: UIDs, versions, `status`; so
//!   are owners. Finalizers are only created, never applied server-side. `stringData` becomes
//!   `data`.
//! - A part of an identity that is not valid in a path is an error, also in what was tracked; so
//!   are a namespaced object without a namespace, a duplicate, and more than 100 levels, each in
//!   its entry. What a faulty manifest may mean stays tracked.
//! - An executor is refused a role of more than 100 items, `ignoreFields` for RBAC objects, and a
//!   binding without a role or with another role than the existing one; what server-side apply
//!   keeps of a role is reviewed too. To read, it needs only `get`.
//! - Neither feedback nor rules see the data of a `Secret`.
//! - Objects that are only read are not owned; an earlier reference is removed.
//! - No rule sets `Applied`, `Deleting` or `StatusFeedbackSynced`, or a condition whose type is not
//!   valid.
//! - A completion with an unreadable time is no reason to delete.
//! - A rollout strategy that cannot be parsed stays in its set's conditions; nothing is done.
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
//! - The number of manifests of a work is not bounded here: the hub bounds its size.
//! - A new RBAC object that another writer creates between review and apply goes unseen.
//! - A user who can set the annotation with the hash of `ignoreFields` on the member can hold up an
//!   apply.
//! - The fields of an [`identity::Identity`] are public: an identity that is deserialized is
//!   checked, one that is built in code must be checked with [`identity::Identity::check`].

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
