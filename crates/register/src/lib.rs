//! The pure part of the registration of clusters: turns objects of a hub into cluster Secrets or
//! refusals.
//!
//! Nothing here opens a file, runs a program or connects to anything: the text of an object's
//! author is data. Every refusal names the field at fault and the way out, and none repeats a
//! value: refusals become Events, which more people can read than Secrets.

pub mod certificate;
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
