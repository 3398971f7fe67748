//! What an error of the client says, without what users cannot read.

use std::error::Error as StdError;
use std::io;

use api::side::Side;
use hyper_util::client::legacy;
use kube::client::AuthError;
use kube::config::LoadDataError;
use net::words::{self, causes};

use super::{CONNECT_AGAIN, Failure, Kind};

/// Causes searched of one error, so that a circular chain ends too.
const DEEPEST: usize = 16;

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        let side = match &error {
            kube::Error::Api(_) => None,
            error if of_credential(error).is_some() => Some(Side::Caller),
            // Our own client: nothing is between it and the hub.
            kube::Error::HyperError(_) | kube::Error::Service(_) => Some(Side::Hub),
            kube::Error::Auth(_) => Some(Side::Caller),
            kube::Error::ReadEvents(_) => return Self::broken(&error),
            _ => return Self::own(chain(&error)),
        };
        match error {
            // kube marks an error that is not a Status like this.
            kube::Error::Api(status) if status.reason == "Failed to parse error data" => {
                Self::plain(status.code, &status.message)
            }
            kube::Error::Api(status) => Self::answered(*status),
            error => {
                let retry_after = is_connecting(&error).then_some(CONNECT_AGAIN);
                Self { side, retry_after, ..Self::new(Kind::Unanswered, chain(&error)) }
            }
        }
    }
}

/// Whether no connection could be made, so that nothing was sent.
fn is_connecting(error: &kube::Error) -> bool {
    let kube::Error::Service(error) = error else { return false };
    error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
}

/// An error and its causes.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> String {
    of_credential(error).unwrap_or_else(|| causes(error))
}

/// The failure to get the kubeconfig's credential, if it is among the causes. kube quotes the whole
/// input and output of a credential program, which include secrets, and the names of files, in
/// whose place people paste credentials.
fn of_credential(error: &(dyn StdError + 'static)) -> Option<String> {
    words::chain(error).take(DEEPEST).find_map(|cause| match cause.downcast_ref() {
        Some(LoadDataError::ReadFile(error, _)) => Some(unread("a file", error)),
        _ => unquoted(cause.downcast_ref()?),
    })
}

fn unread(what: &str, error: &io::Error) -> String {
    format!("{what} that the kubeconfig names cannot be read: {}", words::io(error))
}

/// The text in place of an error that quotes the program, or the name of the token's file.
fn unquoted(error: &AuthError) -> Option<String> {
    const PROGRAM: &str = "the credential program of the kubeconfig";
    match error {
        AuthError::AuthExecRun { out, .. } => Some(format!("{PROGRAM} failed with {}", out.status)),
        AuthError::ReadTokenFile(error, _) => Some(unread("the token file", error)),
        AuthError::AuthExecParse(_) => Some(format!("{PROGRAM} printed no ExecCredential")),
        _ => None,
    }
}
