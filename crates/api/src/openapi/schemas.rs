//! The schemas of all types that we serve: what `kubectl explain` prints.

use serde_json::{Map, Value};

use super::Api;
use super::schema::Form::{Boolean, Bytes, Integer, List, Object, Text, TextMap, Time};
use super::schema::{Field, Schema, qualified};

pub(super) fn all(api: &Api) -> Map<String, Value> {
    let common = COMMON.iter().chain(api.schemas);
    common.map(|schema| (qualified(api, schema.name), schema.to_json(api))).collect()
}

pub(super) const OURS: &[Schema] = &[
    Schema {
        name: "ClusterGateway",
        description: "A member cluster that requests are proxied to. It is a view of the Secret of the same name.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "Metadata of the cluster's Secret."),
            Field::new("spec", Object("ClusterGatewaySpec"), "How the cluster is reached."),
            Field::new("status", Object("ClusterGatewayStatus"), "The cluster's health."),
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
            Field::new("endpoint", Object("ClusterEndpoint"), "Address of the cluster's API server."),
            Field::new("credential", Object("ClusterAccessCredential"), "What the gateway authenticates with."),
        ],
    },
    Schema {
        name: "ClusterEndpoint",
        description: "Address of a cluster's API server.",
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
        description: "What the gateway authenticates to a cluster with. Its secret part is shown only if the \
                      operator of the gateway enabled that.",
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
        description: "A cluster's health, as written through the health subresource.",
        is_kind: false,
        fields: &[
            Field::new(
                "healthy",
                Boolean,
                "Whether the cluster was last found healthy; also false if its health is unknown.",
            ),
            Field::new("healthyReason", Text, "Why the cluster is healthy or not."),
        ],
    },
    Schema {
        name: "ClusterGatewayProxyOptions",
        description: "Parameters of a proxied request.",
        is_kind: true,
        fields: &[
            Field::new("path", Text, "The path on the member cluster."),
            Field::new("impersonate", Boolean, "Whether the gateway impersonates the caller on the member."),
        ],
    },
    Schema {
        name: "ClusterTraffic",
        description: "Traffic of one replica of the gateway to a cluster. Each replica counts its own.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "The cluster's name."),
            Field::new("status", Object("ClusterTrafficStatus"), "The counters.").required(),
        ],
    },
    Schema {
        name: "ClusterTrafficStatus",
        description: "One replica's counters for a cluster.",
        is_kind: false,
        fields: &[
            Field::new("replica", Text, "The replica that counted: the name of its pod.").required(),
            Field::new("since", Integer, "Start of counting, in milliseconds since 1970.").required(),
            Field::new("requestsInFlight", Integer, "Requests in flight, streams included, upgrades excluded."),
            Field::new("streamsInFlight", Integer, "Open watches and followed logs."),
            Field::new("upgradesInFlight", Integer, "Open upgrades: exec, attach, port-forward."),
            Field::new("connections", Integer, "Pooled connections to the member."),
            Field::new("circuitOpen", Boolean, "Whether dials are paused, because the last ones failed."),
            Field::new("requests", List("ClusterTrafficRequests"), "Requests that ended, by method and code."),
            Field::new("failures", List("ClusterTrafficFailures"), "The gateway's own failures, by side."),
            Field::new("duration", Object("ClusterTrafficDuration"), "Duration of requests, streams excluded."),
            Field::new("recentFailures", List("ClusterTrafficFailure"), "The last failures, oldest first."),
            Field::new("tunnelOpen", Object("ClusterTrafficTunnelOpen"), "The last stream requested from the tunnel."),
        ],
    },
    Schema {
        name: "ClusterTrafficRequests",
        description: "Number of requests by method and code.",
        is_kind: false,
        fields: &[
            Field::new("method", Text, "The HTTP method."),
            Field::new("code", Integer, "The HTTP status code."),
            Field::new("count", Integer, "Number of requests."),
        ],
    },
    Schema {
        name: "ClusterTrafficFailures",
        description: "Number of requests that failed on one side.",
        is_kind: false,
        fields: &[
            Field::new("side", Text, "caller, hub, gateway, tunnel or member."),
            Field::new("count", Integer, "Number of requests."),
        ],
    },
    Schema {
        name: "ClusterTrafficDuration",
        description: "A histogram of the duration of requests.",
        is_kind: false,
        fields: &[
            Field::new("sumMicros", Integer, "Sum of all durations, in microseconds."),
            Field::new("buckets", List("ClusterTrafficBucket"), "Ascending, not cumulative."),
        ],
    },
    Schema {
        name: "ClusterTrafficBucket",
        description: "Number of requests that took longer than the previous bucket's bound, and no longer than this.",
        is_kind: false,
        fields: &[
            Field::new("mostMicros", Integer, "Upper bound in microseconds; absent: none."),
            Field::new("count", Integer, "Number of requests."),
        ],
    },
    Schema {
        name: "ClusterTrafficFailure",
        description: "A failure that the caller did not cause, as in the gateway's log.",
        is_kind: false,
        fields: &[
            Field::new("time", Integer, "Time of the failure, in milliseconds since 1970."),
            Field::new("user", Text, "The caller."),
            Field::new("verb", Text, "The verb of the request."),
            Field::new("resource", Text, "The resource of the request, in the format of kubectl auth can-i."),
            Field::new("code", Integer, "The HTTP status code of the response."),
            Field::new("side", Text, "Where it failed: hub, gateway, tunnel or member."),
            Field::new("tookMicros", Integer, "Duration of the request, in microseconds."),
            Field::new("text", Text, "The cause, as in the log."),
            Field::new("suppressed", Integer, "Failures of the same side that were omitted before this one."),
        ],
    },
    Schema {
        name: "ClusterTrafficTunnelOpen",
        description: "An attempt to open a byte stream to the cluster through the tunnel.",
        is_kind: false,
        fields: &[
            Field::new("time", Integer, "When it ended, in milliseconds since 1970."),
            Field::new("tookMicros", Integer, "Time until the stream was open or refused, in microseconds."),
            Field::new("hops", List("ClusterTrafficTunnelHop"), "The hops tried, in the order of their answers."),
        ],
    },
    Schema {
        name: "ClusterTrafficTunnelHop",
        description: "A tunnel-server that was tried for a byte stream.",
        is_kind: false,
        fields: &[
            Field::new("server", Text, "Its address; empty: the gateway itself, to which agents are linked."),
            Field::new("outcome", Text, "opened, the reason of a refusal, unreachable or unanswered."),
            Field::new(
                "tookMicros",
                Integer,
                "Time until it answered, including the agent's dial of the API server, in microseconds.",
            ),
            Field::new(
                "roundTripMicros",
                Integer,
                "Round trip of the last PING between gateway and server; absent: not measured yet.",
            ),
            Field::new(
                "agentMicros",
                Integer,
                "Time from the server's request to the agent until its answer; absent: the server did not report it.",
            ),
            Field::new(
                "dialMicros",
                Integer,
                "Time of the agent's dial of the API server; absent: the agent did not report it.",
            ),
        ],
    },
    Schema {
        name: "VirtualCluster",
        description: "A member cluster, or the hub itself under the name local, as applications see it: without endpoint \
                      details and credentials.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "Metadata of the object that defines the cluster."),
            Field::new("spec", Object("VirtualClusterSpec"), "Description of the cluster."),
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
        description: "Description of a cluster.",
        is_kind: false,
        fields: &[
            Field::new("alias", Text, "Another name of the cluster, for display."),
            Field::new("accepted", Boolean, "Whether the hub accepted the cluster."),
            Field::new("endpoint", Text, "Address of the API server, or how it is reached; - if unknown."),
            Field::new(
                "credential-type",
                Text,
                "Kind of the credential: ServiceAccountToken, X509Certificate, Dynamic, \
                                                 ManagedCluster, or Internal for the hub itself.",
            ),
        ],
    },
];

/// The schemas that every group needs.
const COMMON: &[Schema] = &[
    Schema {
        name: "ObjectMeta",
        description: "Metadata of an object.",
        is_kind: false,
        fields: &[
            Field::new("name", Text, "Name of the cluster."),
            Field::new("uid", Text, "Distinguishes the object from earlier ones with the same name."),
            Field::new("resourceVersion", Text, "Changes whenever the object does."),
            Field::new("creationTimestamp", Time, "When the object was created."),
            Field::new("labels", TextMap, "Labels for selectors."),
            Field::new("annotations", TextMap, "Annotations of the object."),
        ],
    },
    Schema {
        name: "ListMeta",
        description: "Metadata of a list.",
        is_kind: false,
        fields: &[
            Field::new("resourceVersion", Text, "Where a watch that continues this list begins."),
            Field::new("continue", Text, "Where the next page begins, if this one is not the last."),
            Field::new("remainingItemCount", Integer, "Number of objects on the following pages, if known."),
        ],
    },
];
