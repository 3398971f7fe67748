use proptest::prelude::*;

use super::*;

fn targets(rules: &[&str]) -> Targets {
    let rules = rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
    Targets::new(ClusterName::parse("c1").unwrap(), to("10.0.0.1:6443"), rules)
}

fn to(text: &str) -> Destination {
    Destination::parse(text).unwrap()
}

/// Whether `destination` may be dialled at `address`, if it resolves to that.
fn reaches(rules: &[&str], destination: &str, address: &str) -> bool {
    let targets = targets(rules);
    targets
        .candidate(&to(destination))
        .is_ok_and(|candidate| targets.permits(&candidate, address.parse().expect("an address")))
}

#[test]
fn the_api_server_has_many_names() {
    for name in
        ["c1:1", "C1.:443", "kubernetes.default.svc:443", "kubernetes.default.svc.cluster.local:443", "10.0.0.1:6443"]
    {
        let candidate = targets(&[]).candidate(&to(name)).unwrap();
        assert_eq!(candidate.destination, to("10.0.0.1:6443"), "{name}");
        assert!(targets(&[]).permits(&candidate, "127.0.0.1".parse().unwrap()), "wherever the operator put it");
    }
    for name in ["c2:443", "kubernetes.default.svc:80", "kubernetes.default:443", "10.0.0.1:443", "10.0.0.2:6443"] {
        let error = targets(&[]).candidate(&to(name)).unwrap_err().to_string();
        assert!(error.contains("agent of cluster c1") && error.contains(&format!("--allow={name}")), "{error}");
    }
}

#[test]
fn rules_allow_what_they_say() {
    for (rules, destination, address, allowed) in [
        (&["10.1.0.0/16"][..], "10.1.2.3:80", "10.1.2.3", true),
        (&["10.1.0.0/16:443"], "10.1.2.3:80", "10.1.2.3", false),
        (&["10.1.0.0/16:443"], "10.1.2.3:443", "10.1.2.3", true),
        (&["10.1.2.3"], "10.1.2.3:1", "10.1.2.3", true),
        (&["10.1.2.3"], "[::ffff:10.1.2.3]:1", "::ffff:10.1.2.3", true),
        (&["[fd00::/8]:443"], "[fd00::1]:443", "fd00::1", true),
        (&["fd00::/8"], "[fe00::1]:443", "fe00::1", false),
        // A range covers the addresses that a name resolves to.
        (&["10.1.0.0/16"], "web.local:80", "10.1.2.3", true),
        (&["10.1.0.0/16"], "web.local:80", "10.2.2.3", false),
        (&["10.1.0.0/16:443"], "web.local:80", "10.1.2.3", false),
        // A name is allowed at any address; its subdomains are not.
        (&["Web.Local"], "web.local.:80", "8.8.8.8", true),
        (&["web.local:443"], "web.local:80", "8.8.8.8", false),
        (&["web.local"], "a.web.local:80", "8.8.8.8", false),
        (&["web.local"], "8.8.8.8:80", "8.8.8.8", false),
    ] {
        assert_eq!(reaches(rules, destination, address), allowed, "{rules:?} {destination} at {address}");
    }
}

#[test]
fn loopback_link_local_and_metadata_need_a_rule_about_them() {
    let everything = ["0.0.0.0/0", "::/0"];
    for address in [
        "127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[::ffff:127.0.0.1]",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "[fd00:ec2::254]",
        "[fd00:ec2::23]",
        "[fd20:ce::254]",
        "[fd00:c1::a9fe:a9fe]",
        "[fd00:42::42]",
        // IPv6 that ends up at an IPv4 address.
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b::a83f:8110]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[64:ff9b:1:a9fe:a9:fe00::]",
        "[64:ff9b:1:a9:fe:a9fe::]",
        "[64:ff9b:1:7:a9:fea9:fe00:0]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[::169.254.169.254]",
    ] {
        let (destination, bare) = (format!("{address}:80"), address.trim_matches(['[', ']']));
        assert!(!reaches(&everything, &destination, bare), "{address}");
        assert!(!reaches(&everything, "rebound.example:80", bare), "{address}");
        assert!(
            !reaches(&["rebound.example"], "rebound.example:80", bare),
            "{address}: names point where their owner likes"
        );
        assert!(reaches(&[bare], &destination, bare), "{address}: named itself");
    }
    assert!(reaches(&everything, "8.8.8.8:80", "8.8.8.8") && reaches(&everything, "[2001:db8::1]:80", "2001:db8::1"));
    for address in
        ["fd00:42::1", "fd12::1", "64:ff9b::808:808", "64:ff9b:1::808:808", "64:ff9b:1:808:8:800::", "2002:808:808::1"]
    {
        assert!(reaches(&everything, &format!("[{address}]:80"), address), "{address}");
        assert!(reaches(&["web.local"], "web.local:80", address), "{address}");
    }
    assert!(!reaches(&["fd00::/8"], "[fd00:ec2::254]:80", "fd00:ec2::254"));
    assert!(reaches(&["127.0.0.0/24"], "127.0.0.1:80", "127.0.0.1"));
    assert!(!reaches(&["126.0.0.0/7"], "127.0.0.1:80", "127.0.0.1"), "about more than loopback");
    assert!(reaches(&["localhost"], "localhost:80", "::1") && reaches(&["localhost"], "localhost:80", "127.0.0.1"));
    assert!(!reaches(&["localhost"], "localhost:80", "169.254.169.254"));
}

#[test]
fn which_names_there_are_is_not_told() {
    let targets = targets(&["10.1.0.0/16:80", "10.2.0.1"]);
    let refusal = |to_what: &str| {
        let destination = to(to_what);
        targets.refusal(&targets.candidate(&destination).unwrap(), &destination).to_string()
    };
    let told = refusal("web.local:80");
    assert!(told.contains("does not allow web.local:80, or knows no such name: "), "{told}");
    assert!(!refusal("10.2.0.1:80").contains("no such name"), "an address is none");
}

#[test]
fn names_that_no_rule_can_allow_are_not_resolved() {
    assert!(targets(&["web.local", "10.0.0.0/8:443"]).candidate(&to("other.local:80")).is_err());
    assert!(targets(&["web.local", "10.0.0.0/8:443"]).candidate(&to("other.local:443")).is_ok());
}

#[test]
fn mistakes_in_rules_are_told() {
    for rule in [
        "",
        ":443",
        "web.local:0",
        "web.local:65536",
        "web.local:+1",
        "web.local:",
        "[::1",
        "[::1]443",
        "10.0.0.0/33",
        "a b",
        "-/8",
    ] {
        assert!(Rule::parse(rule).is_err(), "{rule:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_rule_or_an_error(text in "\\PC{0,40}") {
        let _ = Rule::parse(&text);
    }

    #[test]
    fn whatever_is_allowed_metadata_is_not(network: u32, prefix in 0u8..=15, port: u16) {
        let mask = if prefix == 0 { 0 } else { u32::MAX << (32 - prefix) };
        let rule = format!("{}/{prefix}", std::net::Ipv4Addr::from_bits(network & mask));
        let destination = format!("169.254.169.254:{}", port.max(1));
        prop_assert!(!reaches(&[&rule], &destination, "169.254.169.254"), "{}", rule);
    }

    #[test]
    fn one_address_is_allowed_and_no_other(own: u32, other: u32, port in 1u16..) {
        let [own, other] = [own, other].map(std::net::Ipv4Addr::from_bits);
        let reached = reaches(&[&own.to_string()], &format!("{other}:{port}"), &other.to_string());
        prop_assert_eq!(reached, own == other || (other.to_string() == "10.0.0.1" && port == 6443));
    }
}
