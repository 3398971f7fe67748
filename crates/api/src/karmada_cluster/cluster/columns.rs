//! A Cluster as an object and as a row of a table.

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Cluster, Content};
use crate::karmada::{API_VERSION, CLUSTERS, KIND};
use crate::object::{Cell, Column, ObjectMeta, Served};

const WIDE: u8 = 1;

impl Served for Cluster<'_> {
    const RESOURCE: &'static str = CLUSTERS;
    const KIND: &'static str = KIND;
    const API_VERSION: &'static str = API_VERSION;
    const TYPED_ITEMS: bool = false;
    /// The columns of `pkg/printers/internalversion/printers.go`.
    const COLUMNS: &'static [Column] = &[
        Column {
            format: "name",
            ..Column::text(
                "Name",
                "Name must be unique within a namespace. Is required when creating resources, although some resources \
                 may allow a client to request the generation of an appropriate name automatically. Name is primarily \
                 intended for creation idempotence and configuration definition. Cannot be updated. More info: \
                 https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
            )
        },
        Column::text("Version", "KubernetesVersion represents version of the member cluster."),
        Column::text("Mode", "SyncMode describes how a cluster sync resources from karmada control plane."),
        Column::text("Ready", "The aggregate readiness state of this cluster for accepting workloads."),
        Column::text(
            "Age",
            "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
             guaranteed to be set in happens-before order across separate operations. Clients may not set this value. \
             It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. \
             More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        ),
        Column {
            priority: WIDE,
            ..Column::text(
                "Zones",
                "Zones represents the failure zones(also called availability zones) of the member cluster. The zones \
                 are presented as a slice to support the case that cluster runs across multiple failure zones.",
            )
        },
        Column {
            priority: WIDE,
            ..Column::text("Region", "Region represents the region of the member cluster locate in.")
        },
        Column {
            priority: WIDE,
            ..Column::text("Provider", "Provider represents the cloud provider name of the member cluster.")
        },
        Column { priority: WIDE, ..Column::text("API-Endpoint", "The API endpoint of the member cluster.") },
        Column { priority: WIDE, ..Column::text("Proxy-URL", "ProxyURL is the proxy URL for the cluster.") },
    ];

    fn metadata(&self) -> ObjectMeta<'_> {
        ObjectMeta {
            name: self.name,
            uid: &self.uid,
            resource_version: self.resource_version,
            creation_timestamp: self.creation_timestamp,
            labels: (!self.labels.is_empty()).then_some(&self.labels),
            annotations: (!self.annotations.is_empty()).then_some(&self.annotations),
        }
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        let or_none = |text| if str::is_empty(text) { Cell::Text("<none>") } else { Cell::Text(text) };
        let zones = self.spec.zones.join(",");
        vec![
            Cell::Text(self.name),
            Cell::Text(&self.version),
            Cell::Text(&self.spec.sync_mode),
            Cell::Text(self.ready.as_deref().unwrap_or("Unknown")),
            Cell::Text(&self.age),
            if zones.is_empty() { Cell::Text("<none>") } else { Cell::Owned(zones) },
            or_none(&self.spec.region),
            or_none(&self.spec.provider),
            Cell::Text(&self.spec.api_endpoint),
            or_none(&self.spec.proxy_url),
        ]
    }

    type Content<'c>
        = Content<'c>
    where
        Self: 'c;

    fn content(&self) -> Content<'_> {
        Content { spec: &self.spec, status: &self.status }
    }
}

/// The time since `created`, which is RFC 3339.
pub(super) fn age_since(created: Option<&str>, now: SystemTime) -> String {
    let created = created.and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    created.map_or_else(|| "<unknown>".to_owned(), |then| age((OffsetDateTime::from(now) - then).whole_seconds()))
}

/// `seconds` in the form in which Kubernetes prints ages
/// (`k8s.io/apimachinery/pkg/util/duration.HumanDuration`). A time up to two seconds in the future
/// prints as now, because clocks differ.
pub(super) fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two_units((minutes, "m"), (seconds % 60, "s")),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two_units((hours, "h"), (minutes % 60, "m")),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two_units((days, "d"), (hours % 24, "h")),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => two_units((days / 365, "y"), (days % 365, "d")),
        () => format!("{}y", days / 365),
    }
}

fn two_units((many, unit): (i64, &str), (rest, smaller): (i64, &str)) -> String {
    if rest == 0 { format!("{many}{unit}") } else { format!("{many}{unit}{rest}{smaller}") }
}
