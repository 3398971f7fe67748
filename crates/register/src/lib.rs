//! Registration of clusters, as far as it is decided by reading: objects of a hub in, cluster
//! Secrets or refusals out.
//!
//! Nothing here opens a file, runs a program or connects to anything: what an object's author
//! writes is data. Every refusal names the field at fault and the way out, and none repeats a
//! value: refusals become Events, which more people read than Secrets.

pub mod claims;
pub mod cluster_api;
pub mod cluster_profile;
pub mod csr;
pub mod endpoints;
pub mod expiry;
mod fields;
pub mod fingerprint;
pub mod karmada;
pub mod kubeconfig;
pub mod kubeconfig_secret;
pub mod kubefed;
pub mod labels;
pub mod managed_service_account;
pub mod naming;
pub mod ocm;
pub mod outcome;
mod parts;
pub mod profile;
pub mod reading;
mod refused;
pub mod removals;
#[cfg(test)]
mod samples;
pub mod service_account_token;

pub use self::endpoints::Rules;
pub use self::fields::moment;
pub use self::refused::Refused;
