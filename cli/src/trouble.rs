//! What went wrong, and what to do about it.

use std::fmt;
use std::time::Duration;

use fleet::{Failure, Kind};

use crate::{span, text_table};

/// Why a command did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub exit: Exit,
    /// What happened, in a sentence.
    pub what: String,
    /// What to do next. Empty where `what` is all there is to say.
    pub remedy: String,
}

/// Exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// An operation failed for at least one cluster.
    Failed = 1,
    /// The command line, a file or a name is wrong: nothing was done. clap uses the same code.
    Usage = 2,
    /// The hub could not be asked: not reached, no answer in time, no gateway, or it refused the
    /// person.
    Hub = 3,
}

/// What to do about a hub without a gateway. No image of it is published.
pub const INSTALL: &str = "choose the hub with --context, or install the gateway: `kubectl clusters install --set \
                           image.repository=…`, with your registry's cluster-gateway";

pub type Result<T> = std::result::Result<T, Trouble>;

// === impl Trouble ===

impl Trouble {
    pub fn failed(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, what: what.into(), remedy: remedy.into() }
    }

    pub fn usage(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, what: what.into(), remedy: remedy.into() }
    }

    /// Ctrl-C came first. The advice then is about the whole command.
    pub fn interrupted() -> Self {
        Self::failed("it was interrupted", "")
    }

    /// The hub did not answer within this time.
    pub fn late(within: Duration) -> Self {
        let what = format!("the hub does not answer within {}", span::took(within));
        let remedy = "give it more time with --request-timeout, or check that `kubectl version` works with this \
                      context";
        Self { exit: Exit::Hub, what, remedy: remedy.to_owned() }
    }

    /// The hub has no gateway, as `why` shows.
    pub fn no_gateway(why: impl fmt::Display) -> Self {
        Self { exit: Exit::Hub, what: format!("this hub has no gateway: {why}"), remedy: INSTALL.to_owned() }
    }

    fn of(failure: &Failure) -> Self {
        let unasked = matches!(failure.kind, Kind::Unanswered | Kind::Late | Kind::Answered(401 | 403));
        let exit = if unasked && failure.cluster.is_none() {
            Exit::Hub
        } else if failure.is_unselectable() {
            Exit::Usage
        } else {
            Exit::Failed
        };
        Self { exit, what: cause(failure), remedy: remedy(failure) }
    }

    /// The same with `doing` before it: "cannot …".
    #[must_use]
    pub fn when(self, doing: impl fmt::Display) -> Self {
        Self { what: format!("{doing}: {}", self.what), ..self }
    }

    /// Whether the hub or a member refused it for lack of a right, in Kubernetes' own words.
    pub fn is_forbidden(&self) -> bool {
        self.what.contains("is forbidden")
    }

    /// The same with another remedy, where the caller knows a better one.
    #[must_use]
    pub fn remedied(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }
}

/// What failed, in one line, without the remedy. Members, genuine or not, choose the words: none of
/// them reaches a terminal as a command.
pub fn cause(failure: &Failure) -> String {
    let mut text = failure.message.clone();
    if !failure.cause.is_empty() && !text.contains(&failure.cause) {
        text = format!("{text} ({})", failure.cause);
    }
    text_table::tame(&text)
}

/// What the reader can do. Empty where the message is all there is to say.
pub fn remedy(failure: &Failure) -> String {
    let step = match failure.kind {
        Kind::Answered(401) if failure.cluster.is_some() => {
            "renew the credential in your kubeconfig; if `kubectl clusters list` works with it, the member refused the \
             registered one: `kubectl clusters probe` names the remedy"
        }
        Kind::Plain(500) if is_of_registration(failure) => {
            "correct what the message names: the cluster's Secret, or, for a cluster behind a tunnel, the gateway's \
             --proxy-host (the Go cluster-gateway needs OCM's cluster-proxy there)"
        }
        Kind::Answered(401) => "renew the credential in your kubeconfig, or choose another --context",
        Kind::Plain(404) if failure.cluster.is_none() => INSTALL,
        Kind::Plain(404) => {
            "check whether this hub has a gateway (`kubectl clusters check`), or choose another --context"
        }
        Kind::Unanswered if failure.side == Some(api::side::Side::Hub) => {
            "check that the hub's address in your kubeconfig is right and that it answers `kubectl version`, or \
             choose another --context"
        }
        _ => failure.next_step(),
    };
    step.to_owned()
}

/// Whether the hub has no gateway to ask: API servers respond like this to paths of an API that
/// they do not have (kube-apiserver, `http.NotFound`). A failure of one cluster does not count,
/// because it may be the member's own.
pub fn is_without_gateway(failure: &Failure) -> bool {
    failure.kind == Kind::Plain(404) && failure.cluster.is_none()
}

/// Whether the Go cluster-gateway could not use the cluster's registration. It then responds before
/// it asks the member (apiserver's `responsewriters.InternalError`), and names a path that no
/// member sees.
pub fn is_of_registration(failure: &Failure) -> bool {
    failure.kind == Kind::Plain(500)
        && failure.message.contains(&format!("\"/apis/{}/{}/clustergateways/", api::GROUP, api::VERSION))
}

/// For requests to the gateway's API.
impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        if is_without_gateway(&failure) {
            return Self::no_gateway(format_args!("it does not have the API {}", api::GROUP));
        }
        Self::of(&failure)
    }
}

/// For requests to Kubernetes' own APIs.
impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Self {
        Self::of(&error.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", text_table::tame(&self.what))?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\nremedy: {}", text_table::tame(&self.remedy)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_says_is_no_command_for_a_terminal() {
        let failure = Failure { cause: "\x07bell".into(), ..Failure::own("\x1b]0;title\x07lost\nsecond") };
        let told = Trouble::from(failure).to_string();
        assert_eq!(told, "error:  ]0;title lost second ( bell)");
    }

    #[test]
    fn a_hub_that_does_not_answer_in_time_was_not_asked() {
        let second = Duration::from_secs(1);
        let late = Failure { kind: Kind::Late, ..Failure::own("no answer") };
        assert_eq!([Trouble::late(second).exit, Trouble::from(late.clone()).exit], [Exit::Hub; 2]);
        let berlin = api::cluster_name::ClusterName::parse("berlin").unwrap();
        assert_eq!(Trouble::from(late.at(&berlin)).exit, Exit::Failed);
    }

    #[test]
    fn a_hub_without_a_gateway_is_told_from_a_cluster_that_lacks_something() {
        let missing = Failure { kind: Kind::Plain(404), ..Failure::own("404: 404 page not found") };
        let trouble = Trouble::from(missing.clone());
        assert_eq!(trouble.exit, Exit::Hub);
        assert!(trouble.what.contains("no gateway") && !trouble.what.contains("page"), "{trouble}");
        assert!(trouble.remedy.contains("--context") && trouble.remedy.contains("image.repository"), "{trouble}");
        let berlin = api::cluster_name::ClusterName::parse("berlin").unwrap();
        let trouble = Trouble::from(missing.at(&berlin));
        assert!(trouble.exit == Exit::Failed && trouble.what.contains("404 page not found"), "{trouble}");
        assert!(trouble.remedy.contains("--context"), "{trouble}");
    }

    #[test]
    fn a_selector_that_the_go_gateway_does_not_read_is_a_wrong_command_line() {
        let failure = Failure { reason: "Unselectable".into(), ..Failure::own("it does not select so") };
        let trouble = Trouble::from(failure);
        assert!(trouble.exit == Exit::Usage && trouble.remedy.contains("another label"), "{trouble}");
    }

    #[test]
    fn cause_and_remedy_are_told_apart() {
        let trouble = Trouble::usage("no context \"x\"", "see `kubectl config get-contexts`");
        assert_eq!(trouble.to_string(), "error: no context \"x\"\nremedy: see `kubectl config get-contexts`");
        let user = Trouble::failed("taken for \x1b[2J\nremedy: curl", "");
        assert_eq!(user.to_string(), "error: taken for  [2J remedy: curl");
        assert_eq!(Trouble::failed("broken", "").when("cannot join").to_string(), "error: cannot join: broken");
    }
}
