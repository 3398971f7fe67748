//! The description of a certificate to be issued: a builder with one method for each property that
//! tests vary.
//!
//! The defaults are those of a healthy certificate: ECDSA, valid from an hour ago for a year,
//! `CA:FALSE`.

use std::collections::BTreeSet;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    RsaKeySize, SanType,
};
use time::{Duration, OffsetDateTime};

use super::der;

/// A permitted use of a certificate (extended key usage, RFC 5280 section 4.2.1.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// `serverAuth`.
    Server,
    /// `clientAuth`.
    Client,
}

/// A certificate to be issued. Build one with [`Leaf::server`], [`Leaf::client`] or [`Leaf::new`].
#[derive(Clone, Debug)]
pub struct Leaf {
    common_name: String,
    organisations: Vec<String>,
    names: Vec<String>,
    usages: BTreeSet<Usage>,
    not_before: Duration,
    not_after: Duration,
    is_authority: bool,
    rsa: bool,
}

// === impl Leaf ===

impl Leaf {
    /// A certificate without any extended key usage (which permits every use).
    pub fn new(common_name: impl Into<String>) -> Self {
        Self {
            common_name: common_name.into(),
            organisations: Vec::new(),
            names: Vec::new(),
            usages: BTreeSet::new(),
            not_before: Duration::hours(-1),
            not_after: Duration::days(365),
            is_authority: false,
            rsa: false,
        }
    }

    /// A serving certificate for `localhost` and 127.0.0.1; [`Leaf::san`] adds further names.
    pub fn server(common_name: impl Into<String>) -> Self {
        Self::new(common_name).usage(Usage::Server).san("localhost").san("127.0.0.1")
    }

    /// A client certificate of the user `common_name`.
    pub fn client(common_name: impl Into<String>) -> Self {
        Self::new(common_name).usage(Usage::Client)
    }

    /// Adds a group: an organisation (O) of the subject. The order is kept.
    #[must_use]
    pub fn group(mut self, organisation: impl Into<String>) -> Self {
        self.organisations.push(organisation.into());
        self
    }

    /// Adds a subject alternative name: an IP address if it reads as one, a DNS name otherwise.
    #[must_use]
    pub fn san(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Forgets the subject alternative names given so far, [`Leaf::server`]'s defaults included.
    #[must_use]
    pub fn without_sans(mut self) -> Self {
        self.names.clear();
        self
    }

    /// Adds an extended key usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usages.insert(usage);
        self
    }

    /// Validity relative to the moment of issue; negative is the past.
    #[must_use]
    pub fn valid(mut self, not_before: Duration, not_after: Duration) -> Self {
        self.not_before = not_before;
        self.not_after = not_after;
        self
    }

    /// Expired an hour ago.
    #[must_use]
    pub fn expired(self) -> Self {
        self.valid(Duration::hours(-2), Duration::hours(-1))
    }

    /// Valid from an hour ahead.
    #[must_use]
    pub fn not_yet_valid(self) -> Self {
        self.valid(Duration::hours(1), Duration::hours(2))
    }

    /// Marks the certificate `CA:TRUE`, which makes it unfit as an end entity.
    #[must_use]
    pub fn authority(mut self) -> Self {
        self.is_authority = true;
        self
    }

    /// Uses an RSA 2048 key (slow to generate) instead of ECDSA P-256.
    #[must_use]
    pub fn rsa(mut self) -> Self {
        self.rsa = true;
        self
    }

    pub(super) fn generate_key(&self) -> KeyPair {
        let key = if self.rsa {
            KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048)
        } else {
            KeyPair::generate()
        };
        key.expect("the system has randomness")
    }

    pub(super) fn params(&self, now: OffsetDateTime) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = subject_alt_names(self.names.iter().map(String::as_str));
        params.is_ca = if self.is_authority { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::ExplicitNoCa };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = self.usages.iter().copied().map(Usage::to_rcgen).collect();
        params.not_before = now + self.not_before;
        params.not_after = now + self.not_after;
        params.use_authority_key_identifier_extension = true;
        params
    }

    /// The subject as Kubernetes reads it: one O for each group, then the CN.
    pub(super) fn subject_der(&self) -> Vec<u8> {
        let organisations = self.organisations.iter().map(|name| (der::ORGANISATION, name.as_str()));
        der::name(organisations.chain([(der::COMMON_NAME, self.common_name.as_str())]))
    }
}

// === impl Usage ===

impl Usage {
    fn to_rcgen(self) -> ExtendedKeyUsagePurpose {
        match self {
            Self::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Self::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }
    }
}

pub(super) fn subject_alt_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<SanType> {
    names
        .map(|name| match name.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.try_into().expect("a DNS name in a certificate is ASCII")),
        })
        .collect()
}
