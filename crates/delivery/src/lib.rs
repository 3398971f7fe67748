//! Delivery of objects to clusters, as far as it is pure: what is done with each object, what is
//! told of it, and who gets something next.
//!
//! Nothing here does IO, asks a clock or knows a client: objects are JSON as the API server sends
//! it, times are arguments, and what is to be done is an answer.
//!
//! # The machinery
//!
//! [`manifests`] reads what is wanted, in [`order`], each with its [`identity`]; [`strategy`] plans
//! the one request that brings an object to it; [`ownership`] and [`deletion`] say whose an object
//! is and what becomes of it; [`executor`] what has to be allowed before; [`feedback`] and
//! [`rules`] what is told of it, by [`json_path`] and expressions; [`rollout`] which clusters are
//! next. None of these knows whose objects ask for it.
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
//! - A PUT keeps what the member fills in and lets nobody change ([`strategy`]); an object is not
//!   written again for what the member filled in.
//! - `ignoreFields` with a `JSONPath` that cannot be read are an error, which upstream only
//!   logs. Of jq there is what names fields ([`jq`]): its interpreters run until they end, and here
//!   is no clock to stop one.
//! - What only the API server sets is dropped from manifests: UIDs, versions, `status`.
//! - A role of more than 100 items is refused to an executor; a duplicate is told in its entry.
//! - A rollout strategy that cannot be read stays told in its set's conditions.
//! - Works of a `ReplicaSet` have `Progressing` without a rule ([`work::default_progressing`]).

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
mod visible;
pub mod work;
