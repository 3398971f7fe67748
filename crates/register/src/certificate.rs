//! What a server's certificate is for.

use std::net::IpAddr;

use x509_parser::extensions::GeneralName;

/// The DNS names and addresses in the first certificate of a PEM chain, in its order; `None`: it
/// cannot be read.
pub fn names(pem: &[u8]) -> Option<Vec<String>> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let extension = certificate.subject_alternative_name().ok()?;
    Some(extension.into_iter().flat_map(|names| &names.value.general_names).filter_map(name).collect())
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let short = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    short.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    #[test]
    fn a_certificate_says_what_it_is_for() {
        let leaf = Leaf::new("x").san("Agents.example.com").san("*.example.com").san("10.0.0.7").san("2001:db8::1");
        let issued = Authority::new("ca").issue(&leaf);
        let found = names(issued.chain_pem.as_bytes()).unwrap();
        assert_eq!(found, ["agents.example.com", "*.example.com", "10.0.0.7", "2001:db8::1"]);
        let bare = Authority::new("ca").issue(&Leaf::new("x"));
        assert_eq!(names(bare.chain_pem.as_bytes()), Some(Vec::new()));
        assert_eq!(names(b"no certificate"), None);
    }
}
