//! What may be told of a YAML file that does not parse.
//!
//! Parsers quote the lines around a mistake, and the files read here hold credentials: only the place is told.

use kube::config::KubeconfigError;

/// Where the mistake is.
pub fn place(error: &serde_saphyr::Error) -> String {
    match error.location() {
        Some(location) => format!("not valid near line {}, column {}", location.line(), location.column()),
        None => "not valid".to_owned(),
    }
}

/// What is wrong with a kubeconfig.
pub fn kubeconfig(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => format!("the kubeconfig is {}", place(error)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::*;

    #[test]
    fn a_kubeconfig_is_never_quoted() {
        for broken in [
            "users:\n- name: a\n  user:\n    token: CANARY\n    username: [x]y\n",
            "users: [{token: CANARY",
            "token: \"CANARY",
        ] {
            let error = Kubeconfig::from_yaml(broken).unwrap_err();
            let text = kubeconfig(&error);
            assert!(text.contains("line") && !text.contains("CANARY"), "{text}");
        }
    }
}
