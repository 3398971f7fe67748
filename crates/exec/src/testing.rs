//! Plugin configurations for tests.

use api::secret::{ExecApiVersion, ExecConfig};

use crate::request::{ClusterInfo, Request};

pub(crate) fn config(command: &str, args: &[&str]) -> ExecConfig {
    ExecConfig {
        api_version: ExecApiVersion::V1,
        command: command.to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        env: Vec::new(),
        provide_cluster_info: false,
        install_hint: None,
    }
}

pub(crate) fn with_env(mut config: ExecConfig, env: &[(&str, &str)]) -> ExecConfig {
    config.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    config
}

pub(crate) fn request(config: ExecConfig) -> Request {
    Request::new(config, ClusterInfo::default)
}

/// A request for `sh -c script`.
pub(crate) fn script(script: &str) -> Request {
    request(config("sh", &["-c", script]))
}
