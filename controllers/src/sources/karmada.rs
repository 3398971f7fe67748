//! Karmada: a `Cluster` of its control plane, and the Secrets that it refers to.

use register::karmada;

use super::Kind;
use super::referring::Referring;

/// Its API server has it by aggregation, without a definition.
pub const KIND: Kind = Kind {
    group: karmada::GROUP,
    name: karmada::KIND,
    plural: "clusters",
    versions: karmada::VERSIONS,
    is_custom: false,
};

pub const REFERRING: Referring = Referring {
    fields: &[
        "syncMode",
        "apiEndpoint",
        "secretRef",
        "impersonatorSecretRef",
        "insecureSkipTLSVerification",
        "proxyURL",
        "proxyHeader",
        "region",
        "zone",
        "zones",
        "provider",
    ],
    namespace: Some(karmada::NAMESPACE),
    references: karmada::references,
    read: karmada::read,
};
