//! Every type we serve, field by field: what `kubectl explain` prints.

use serde_json::{Map, Value};

use super::schema::Form::{Boolean, Bytes, Integer, List, Object, Text, TextMap, Time};
use super::schema::{Field, Schema, qualified};

pub(super) fn all() -> Map<String, Value> {
    SCHEMAS.iter().map(|schema| (qualified(schema.name), schema.to_json())).collect()
}

const SCHEMAS: &[Schema] = &[
    Schema {
        name: "ClusterGateway",
        description: "A member cluster that requests are proxied to. It is a view of the Secret of the same name.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "Metadata of the cluster's Secret."),
            Field::new("spec", Object("ClusterGatewaySpec"), "How the cluster is reached."),
            Field::new("status", Object("ClusterGatewayStatus"), "What is known of the cluster's health."),
        ],
    },
    Schema {
        name: "ClusterGatewayList",
        description: "A list of ClusterGateways.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ListMeta"), "Metadata of the list."),
            Field::new("items", List("ClusterGateway"), "The clusters.").required(),
        ],
    },
    Schema {
        name: "ClusterGatewaySpec",
        description: "How a cluster is reached.",
        is_kind: false,
        fields: &[
            Field::new("provider", Text, "Always empty; present for compatibility."),
            Field::new("access", Object("ClusterAccess"), "Endpoint and credential of the cluster.").required(),
        ],
    },
    Schema {
        name: "ClusterAccess",
        description: "Endpoint and credential of a cluster.",
        is_kind: false,
        fields: &[
            Field::new("endpoint", Object("ClusterEndpoint"), "Where the cluster's API server is."),
            Field::new("credential", Object("ClusterAccessCredential"), "What the gateway authenticates with."),
        ],
    },
    Schema {
        name: "ClusterEndpoint",
        description: "Where a cluster's API server is.",
        is_kind: false,
        fields: &[
            Field::new("type", Text, "Const for an address, ClusterProxy for a cluster behind a tunnel.").required(),
            Field::new("const", Object("ClusterEndpointConst"), "The address, if the type is Const."),
        ],
    },
    Schema {
        name: "ClusterEndpointConst",
        description: "An API server with a fixed address.",
        is_kind: false,
        fields: &[
            Field::new("address", Text, "URL of the API server, with its base path if it has one.").required(),
            Field::new("caBundle", Bytes, "PEM bundle of the CAs that the API server's certificate must chain to."),
            Field::new("insecure", Boolean, "Whether the API server's certificate is not verified."),
            Field::new(
                "proxy-url",
                Text,
                "URL of the HTTP or SOCKS5 proxy that connections to the API server go through.",
            ),
        ],
    },
    Schema {
        name: "ClusterAccessCredential",
        description: "What the gateway authenticates to a cluster with. Its secret part is shown only where the operator of \
                      the gateway asked for that.",
        is_kind: false,
        fields: &[
            Field::new("type", Text, "ServiceAccountToken, X509Certificate or Dynamic.").required(),
            Field::new("serviceAccountToken", Text, "The bearer token."),
            Field::new("x509", Object("X509"), "The client certificate."),
        ],
    },
    Schema {
        name: "X509",
        description: "A client certificate with its private key.",
        is_kind: false,
        fields: &[
            Field::new("certificate", Bytes, "PEM of the certificate and its intermediates.").required(),
            Field::new("privateKey", Bytes, "PEM of the private key.").required(),
        ],
    },
    Schema {
        name: "ClusterGatewayStatus",
        description: "What is known of a cluster's health, as written through the health subresource.",
        is_kind: false,
        fields: &[
            Field::new("healthy", Boolean, "Whether the cluster was last found healthy; false also if nobody looked."),
            Field::new("healthyReason", Text, "Why the cluster is healthy or not."),
        ],
    },
    Schema {
        name: "ClusterGatewayProxyOptions",
        description: "Parameters of a proxied request.",
        is_kind: true,
        fields: &[
            Field::new("path", Text, "The path on the member cluster."),
            Field::new("impersonate", Boolean, "Whether the member is asked to act as the caller."),
        ],
    },
    Schema {
        name: "ClusterTraffic",
        description: "What passed one replica of the gateway on its way to a cluster. Each replica counts its own.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "The cluster's name."),
            Field::new("status", Object("ClusterTrafficStatus"), "What was counted.").required(),
        ],
    },
    Schema {
        name: "ClusterTrafficStatus",
        description: "What one replica of the gateway counted for a cluster.",
        is_kind: false,
        fields: &[
            Field::new("replica", Text, "Which replica counted: the name of its pod.").required(),
            Field::new("since", Integer, "Since when, in milliseconds since 1970.").required(),
            Field::new("requestsInFlight", Integer, "Requests under way, streams included, upgrades excluded."),
            Field::new("streamsInFlight", Integer, "Watches and followed logs under way."),
            Field::new("upgradesInFlight", Integer, "Exec, attach and port-forward under way."),
            Field::new("connections", Integer, "Pooled connections to the member."),
            Field::new("circuitOpen", Boolean, "Whether dials are not tried, because the last ones failed."),
            Field::new("requests", List("ClusterTrafficRequests"), "Requests that ended, by method and code."),
            Field::new("failures", List("ClusterTrafficFailures"), "The gateway's own failures, by side."),
            Field::new("duration", Object("ClusterTrafficDuration"), "How long requests took, streams excluded."),
            Field::new("recentFailures", List("ClusterTrafficFailure"), "The last failures, oldest first."),
            Field::new("tunnelOpen", Object("ClusterTrafficTunnelOpen"), "The last stream asked of the tunnel."),
        ],
    },
    Schema {
        name: "ClusterTrafficRequests",
        description: "How many requests ended so.",
        is_kind: false,
        fields: &[
            Field::new("method", Text, "The HTTP method."),
            Field::new("code", Integer, "The HTTP status code."),
            Field::new("count", Integer, "How many there were."),
        ],
    },
    Schema {
        name: "ClusterTrafficFailures",
        description: "How many requests failed on one side.",
        is_kind: false,
        fields: &[
            Field::new("side", Text, "caller, hub, gateway, tunnel or member."),
            Field::new("count", Integer, "How many there were."),
        ],
    },
    Schema {
        name: "ClusterTrafficDuration",
        description: "A histogram of how long requests took.",
        is_kind: false,
        fields: &[
            Field::new("sumMicros", Integer, "All together, in microseconds."),
            Field::new("buckets", List("ClusterTrafficBucket"), "Ascending, not cumulative."),
        ],
    },
    Schema {
        name: "ClusterTrafficBucket",
        description: "How many requests took longer than the bucket before, and no longer than this.",
        is_kind: false,
        fields: &[
            Field::new("mostMicros", Integer, "In microseconds; absent: no bound."),
            Field::new("count", Integer, "How many there were."),
        ],
    },
    Schema {
        name: "ClusterTrafficFailure",
        description: "A failure that was not its caller's, as the gateway's log has it.",
        is_kind: false,
        fields: &[
            Field::new("time", Integer, "In milliseconds since 1970."),
            Field::new("user", Text, "Who asked for it."),
            Field::new("verb", Text, "What was asked: the verb."),
            Field::new("resource", Text, "What was asked: the resource, as kubectl auth can-i takes it."),
            Field::new("code", Integer, "The HTTP status code of the answer."),
            Field::new("side", Text, "Where it failed: hub, gateway, tunnel or member."),
            Field::new("tookMicros", Integer, "How long it took, in microseconds."),
            Field::new("text", Text, "The cause, as the log has it."),
            Field::new("untold", Integer, "Failures of the same side that were left out before this one."),
        ],
    },
    Schema {
        name: "ClusterTrafficTunnelOpen",
        description: "An attempt to open a byte stream to the cluster through the tunnel.",
        is_kind: false,
        fields: &[
            Field::new("time", Integer, "When it ended, in milliseconds since 1970."),
            Field::new("tookMicros", Integer, "Until the stream was open or refused, in microseconds."),
            Field::new("hops", List("ClusterTrafficTunnelHop"), "Who was asked, in the order of their answers."),
        ],
    },
    Schema {
        name: "ClusterTrafficTunnelHop",
        description: "A tunnel-server that was asked for a byte stream.",
        is_kind: false,
        fields: &[
            Field::new("server", Text, "Its address; empty: the gateway itself, to which agents are linked."),
            Field::new("outcome", Text, "opened, the reason of a refusal, unreachable or unanswered."),
            Field::new(
                "tookMicros",
                Integer,
                "Until it answered, the agent's dial of the API server included, in microseconds.",
            ),
            Field::new(
                "roundTripMicros",
                Integer,
                "Of the last PING between gateway and server; absent: none was measured yet.",
            ),
        ],
    },
    Schema {
        name: "VirtualCluster",
        description: "A member cluster, or the hub itself under the name local, as applications see it: without endpoint \
                      details and credentials.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "Metadata of what the cluster is known from."),
            Field::new("spec", Object("VirtualClusterSpec"), "What is known of the cluster."),
        ],
    },
    Schema {
        name: "VirtualClusterList",
        description: "A list of VirtualClusters: local first, then the newest.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ListMeta"), "Metadata of the list."),
            Field::new("items", List("VirtualCluster"), "The clusters.").required(),
        ],
    },
    Schema {
        name: "VirtualClusterSpec",
        description: "What is known of a cluster.",
        is_kind: false,
        fields: &[
            Field::new("alias", Text, "Another name of the cluster, for display."),
            Field::new("accepted", Boolean, "Whether the hub accepted the cluster."),
            Field::new("endpoint", Text, "Address of the API server, or how it is reached; - if that is not known."),
            Field::new(
                "credential-type",
                Text,
                "Kind of the credential: ServiceAccountToken, X509Certificate, Dynamic, \
                                                 ManagedCluster, or Internal for the hub itself.",
            ),
        ],
    },
    Schema {
        name: "ObjectMeta",
        description: "Metadata of an object.",
        is_kind: false,
        fields: &[
            Field::new("name", Text, "Name of the cluster."),
            Field::new("uid", Text, "Identifies the object even among those that had its name before."),
            Field::new("resourceVersion", Text, "Changes whenever the object does."),
            Field::new("creationTimestamp", Time, "When the object was made."),
            Field::new("labels", TextMap, "Labels that selectors choose by."),
            Field::new("annotations", TextMap, "Further facts about the object."),
        ],
    },
    Schema {
        name: "ListMeta",
        description: "Metadata of a list.",
        is_kind: false,
        fields: &[
            Field::new("resourceVersion", Text, "Where a watch that continues this list begins."),
            Field::new("continue", Text, "Where the next page begins, if this one is not the last."),
            Field::new("remainingItemCount", Integer, "Number of objects on the pages to come, if known."),
        ],
    },
];
