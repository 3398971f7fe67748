//! What the programs on the hub and a person have to be allowed there.

use crate::findings::Finding;

/// A right that a user needs.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    /// Needed in the clusters' namespace, not in all namespaces.
    pub namespaced: bool,
}

/// What the gateway's ServiceAccount needs on the hub.
pub const OF_GATEWAY: [Need; 5] = [
    Need {
        verb: "create",
        group: "authentication.k8s.io",
        resource: "tokenreviews",
        subresource: "",
        namespaced: false,
    },
    Need {
        verb: "create",
        group: "authorization.k8s.io",
        resource: "subjectaccessreviews",
        subresource: "",
        namespaced: false,
    },
    Need { verb: "get", group: "", resource: "secrets", subresource: "", namespaced: true },
    Need { verb: "list", group: "", resource: "secrets", subresource: "", namespaced: true },
    Need { verb: "watch", group: "", resource: "secrets", subresource: "", namespaced: true },
];

/// What the tunnel-servers' ServiceAccount needs there: without it they refuse every agent.
pub const OF_TUNNEL_SERVERS: [Need; 2] = [OF_GATEWAY[0], OF_GATEWAY[1]];

/// What a person needs, to see clusters, to use them and to register others.
pub const OF_PERSON: [Need; 3] = [
    Need { verb: "list", group: api::GROUP, resource: "clustergateways", subresource: "", namespaced: false },
    Need { verb: "get", group: api::GROUP, resource: "clustergateways", subresource: "proxy", namespaced: false },
    Need { verb: "create", group: "", resource: "secrets", subresource: "", namespaced: true },
];

// === impl Need ===

impl Need {
    fn describe(&self) -> String {
        let dot = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let slash = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        format!("{} {}{dot}{slash}", self.verb, self.resource)
    }
}

/// Finding about a right of the user `who`.
pub fn right(who: &str, need: &Need, namespace: &str, allowed: bool) -> Finding {
    let place = match namespace {
        _ if !need.namespaced => String::new(),
        "" => " in all namespaces".to_owned(),
        namespace => format!(" in {namespace}"),
    };
    let action = need.describe();
    if allowed {
        return Finding::good(format!("{who} may {action}{place}"));
    }
    let what = format!("{who} may not {action}{place}");
    if who == "you" {
        Finding::warning(what, "ask the hub's administrator, if you need it")
    } else {
        Finding::bad(what, "`kubectl clusters install` again, or `helm upgrade` the chart: it grants this")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Mark;

    #[test]
    fn a_missing_right_is_the_gateways_failure_and_a_persons_affair() {
        assert_eq!(right("the gateway", &OF_GATEWAY[2], "ns", false).mark, Mark::Bad);
        assert_eq!(
            right("you", &OF_PERSON[1], "ns", false).what,
            "you may not get clustergateways.cluster.core.oam.dev/proxy"
        );
        assert_eq!(right("the gateway", &OF_GATEWAY[2], "ns", true).what, "the gateway may get secrets in ns");
    }
}
