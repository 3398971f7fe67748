//! The names that most tests use: the product on real control planes, requests by hand, and errors.

pub use std::sync::Arc;
pub use std::time::Duration;

pub use anyhow::{Context as _, Result, anyhow, bail, ensure};
pub use bytes::Bytes;
pub use http::{Method, StatusCode};
pub use kit::pki::Leaf;
pub use serde_json::{Value, json};

pub use crate::http::Response;
pub use crate::hub::MemberSecret;
pub use crate::kubeconfig::Credential;
pub use crate::testbed::{CLUSTER, Route, Testbed};
pub use crate::wait;
