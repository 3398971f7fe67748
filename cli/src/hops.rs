//! The hops between a person and a member, and the hop at which a request failed.

use api::side::Side;
use fleet::{EndpointType, Failure, Kind};

use crate::trouble;

/// A hop. They are in order, from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    Hub,
    Gateway,
    /// Whether the cluster is registered and the person may use it.
    Registration,
    TunnelServer,
    TunnelAgent,
    Member,
    Credential,
}

// === impl Hop ===

impl Hop {
    /// The hops on the way to a cluster of this kind.
    pub fn to(kind: Option<&EndpointType>) -> Vec<Self> {
        let tunnelled = kind == Some(&EndpointType::ClusterProxy);
        let all = [
            Self::Hub,
            Self::Gateway,
            Self::Registration,
            Self::TunnelServer,
            Self::TunnelAgent,
            Self::Member,
            Self::Credential,
        ];
        all.into_iter().filter(|hop| tunnelled || !matches!(hop, Self::TunnelServer | Self::TunnelAgent)).collect()
    }

    /// The name that people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Registration => "registration",
            Self::TunnelServer => "tunnel-server",
            Self::TunnelAgent => "tunnel-agent",
            Self::Member => "member",
            Self::Credential => "credential",
        }
    }

    /// The hop at which a request for a cluster failed. Within the tunnel, only the text says which
    /// end failed.
    pub fn of(failure: &Failure) -> Self {
        let told = format!("{} {}", failure.message, failure.cause);
        let says = |words: &[&str]| words.iter().any(|word| told.contains(word));
        match (failure.side, failure.kind) {
            (Some(Side::Hub), _) | (Some(Side::Caller), Kind::Answered(401) | Kind::Unanswered) => Self::Hub,
            (Some(Side::Caller), _) => Self::Registration,
            (Some(Side::Gateway), _) if says(&["its Secret cannot be used"]) => Self::Registration,
            (Some(Side::Gateway), _) | (None, Kind::Plain(502..=504)) => Self::Gateway,
            (None, _) if trouble::is_of_registration(failure) => Self::Registration,
            (Some(Side::Tunnel), _)
                if says(&[
                    "cannot reach any tunnel-server",
                    "the tunnel-server refused this gateway",
                    "the tunnel-server accepts no more",
                ]) =>
            {
                Self::TunnelServer
            }
            (Some(Side::Tunnel), _) if says(&["and this gateway has none"]) => Self::Gateway,
            (Some(Side::Tunnel), _) => Self::TunnelAgent,
            (Some(Side::Member), _) if says(&["rejected the", "failed to issue credential"]) => Self::Credential,
            (Some(Side::Member) | None, _) => Self::Member,
        }
    }

    /// The same for a failure after the hub accepted the person's credential. The Go
    /// cluster-gateway passes on members' responses, so a 401 is then the member's.
    pub fn admitted(failure: &Failure) -> Self {
        if is_passed_on(failure) { Self::Credential } else { Self::of(failure) }
    }

    /// What to check if the failure itself does not say.
    pub fn remedy(self, cluster: &str) -> String {
        match self {
            Self::Hub => "check that `kubectl version` works with this context".to_owned(),
            Self::Gateway => "`kubectl clusters check` looks at the APIService and the gateway's replicas".to_owned(),
            Self::Registration => format!(
                "`kubectl clusters join {cluster}` registers it; your right is the verb on clustergateways/proxy"
            ),
            Self::TunnelServer => {
                "check that the tunnel-server's pods run, and the gateway's --proxy-host and --proxy-port".to_owned()
            }
            Self::TunnelAgent => {
                "check that the tunnel-agent's pods run on the member and are linked, and their log".to_owned()
            }
            Self::Member => {
                "check that the member's API server runs, and that the address in its Secret is right".to_owned()
            }
            Self::Credential => format!(
                "`kubectl clusters rotate {cluster} --member-context …` renews a token that `join` created; renew \
                 any other credential in its Secret, or run `join {cluster}`, which creates an account"
            ),
        }
    }
}

/// Whether a member rejected the registered credential, provided that the hub has accepted the
/// person's.
pub fn is_passed_on(failure: &Failure) -> bool {
    failure.side == Some(Side::Caller) && failure.kind == Kind::Answered(401)
}

/// What to do about a failure of a request for a cluster, at `hop`.
pub fn remedy(hop: Hop, failure: &Failure, cluster: &str) -> String {
    let told = trouble::remedy(failure);
    // A hop that refuses a request does not know what this program can do about it.
    let is_known_here = matches!(hop, Hop::Credential | Hop::TunnelServer | Hop::TunnelAgent);
    if told.is_empty() || is_known_here { hop.remedy(cluster) } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(side: Option<Side>, kind: Kind, message: &str) -> Hop {
        Hop::of(&Failure { side, kind, ..Failure::own(message) })
    }

    #[test]
    fn failures_are_of_the_hop_that_they_name() {
        let tunnel = |text: &str| {
            hop(
                Some(Side::Tunnel),
                Kind::Answered(503),
                &format!("dial tcp kubernetes.default.svc:443 through the tunnel: {text}"),
            )
        };
        assert_eq!(
            tunnel("the gateway cannot reach any tunnel-server: dial tcp 10.0.0.3:8090: connect: connection refused"),
            Hop::TunnelServer
        );
        assert_eq!(tunnel("no tunnel-agent of the cluster is linked to the tunnel-server: check"), Hop::TunnelAgent);
        let member = |text: &str| hop(Some(Side::Member), Kind::Answered(502), text);
        assert_eq!(member("cluster berlin rejected the registered credential (401): renew"), Hop::Credential);
        assert_eq!(
            member("cluster berlin is unreachable: dial tcp 10.0.0.7:6443: connect: connection refused"),
            Hop::Member
        );
        assert_eq!(hop(Some(Side::Caller), Kind::Answered(403), "clustergateways is forbidden"), Hop::Registration);
        assert_eq!(hop(Some(Side::Caller), Kind::Answered(404), "no such cluster"), Hop::Registration);
        assert_eq!(hop(Some(Side::Caller), Kind::Answered(401), "Unauthorized"), Hop::Hub);
        let refused = Failure { side: Some(Side::Caller), kind: Kind::Answered(401), ..Failure::own("Unauthorized") };
        assert_eq!(Hop::admitted(&refused), Hop::Credential);
        let unusable = "500: Internal Server Error: \"/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy/\
                        version\": failed creating cluster proxy client berlin: unable to parse bytes as PEM block";
        assert_eq!(hop(None, Kind::Plain(500), unusable), Hop::Registration);
        assert_eq!(hop(None, Kind::Plain(500), "500: Internal Server Error: \"/version\": panic"), Hop::Member);
        assert_eq!(hop(None, Kind::Plain(503), "503: service unavailable"), Hop::Gateway);
        assert_eq!(hop(None, Kind::Answered(403), "version is forbidden"), Hop::Member);
    }

    #[test]
    fn only_tunnelled_clusters_have_a_tunnel() {
        let names = |kind| Hop::to(kind).into_iter().map(Hop::name).collect::<Vec<_>>().join(" ");
        assert_eq!(names(Some(&EndpointType::Const)), "hub gateway registration member credential");
        assert_eq!(
            names(Some(&EndpointType::ClusterProxy)),
            "hub gateway registration tunnel-server tunnel-agent member credential"
        );
    }
}
