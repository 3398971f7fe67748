//! `KubeFed`: a `KubeFedCluster`, and the Secret with its token.

use register::kubefed;

use super::Kind;
use super::referring::Referring;

pub const KIND: Kind = Kind {
    group: kubefed::GROUP,
    name: kubefed::KIND,
    plural: "kubefedclusters",
    versions: kubefed::VERSIONS,
    is_custom: true,
};

pub const REFERRING: Referring = Referring {
    fields: &["apiEndpoint", "caBundle", "secretRef", "proxyURL", "disabledTLSValidations"],
    namespace: None,
    references: kubefed::references,
    read: kubefed::read,
};
