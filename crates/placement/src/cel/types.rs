//! Types of values. Lists and maps are not distinguished by their elements.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Known only when evaluated.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    List,
    Map,
    Duration,
    Timestamp,
    Type,
    Optional,
    Quantity,
    Semver,
    Ip,
    Cidr,
    Url,
    Format,
}

/// Types that have a name in expressions.
const NAMED: [Type; 18] = [
    Type::Bool,
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::Text,
    Type::Bytes,
    Type::List,
    Type::Map,
    Type::Null,
    Type::Type,
    Type::Duration,
    Type::Timestamp,
    Type::Optional,
    Type::Quantity,
    Type::Semver,
    Type::Ip,
    Type::Cidr,
    Type::Url,
];

// === impl Type ===

impl Type {
    /// The type of this name. The parser passes a single word, so types with a dot in their name
    /// are not found.
    pub fn named(name: &str) -> Option<Self> {
        NAMED.into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Dyn => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Map => "map",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Type => "type",
            Self::Optional => "optional_type",
            Self::Quantity => "kubernetes.Quantity",
            Self::Semver => "kubernetes.Semver",
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Url => "kubernetes.URL",
            Self::Format => "kubernetes.NamedFormat",
        }
    }

    /// Whether a value of `other` may turn out to be of this type.
    pub fn accepts(self, other: Self) -> bool {
        self == Self::Dyn || other == Self::Dyn || self == other
    }

    pub fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// The type of a value that is of this type or of `other`.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        if self == other { self } else { Self::Dyn }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
