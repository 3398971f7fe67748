use proptest::prelude::*;

use super::*;

#[test]
fn authorities_are_read_and_written() {
    let long = format!("{}.{}.{}.{}:443", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
    for authority in [
        "db:5432",
        "kubernetes.default.svc:443",
        "10.0.0.1:65535",
        "[::1]:1",
        "[fd00:1::2]:443",
        "a_b.example.:80",
        "UPPER:443",
        &long,
    ] {
        let destination = Destination::parse(authority).unwrap();
        assert_eq!(destination.to_string(), authority);
        assert_eq!(Destination::new(destination.host(), destination.port()), Ok(destination));
    }
}

#[test]
fn what_is_no_authority_is_told_why() {
    use DestinationError::{Empty, Host, NoPort, Port};
    let long = format!("{}:443", "a".repeat(64));
    for (authority, error) in [
        ("", Empty),
        ("db", NoPort),
        ("db:", NoPort),
        ("[::1]", NoPort),
        ("[::1]443", NoPort),
        (":443", Host),
        ("db:0", Port),
        ("db:65536", Port),
        ("db:+80", Port),
        ("db:-1", Port),
        ("db:80a", Port),
        ("db: 80", Port),
        ("db:99999999999999999999", Port),
        ("::1:443", Host),
        ("[db]:443", Host),
        ("[::1:443", Host),
        ("[::1%eth0]:443", Host),
        ("[::ffff:1.2.3.4.5]:1", Host),
        ("a b:443", Host),
        ("user@db:443", Host),
        ("http://db:443", Host),
        ("db/x:443", Host),
        ("a..b:443", Host),
        ("..:443", Host),
        ("dä:443", Host),
        ("d\0b:443", Host),
        (&long, Host),
    ] {
        assert_eq!(Destination::parse(authority), Err(error), "{authority:?}");
    }
}

proptest! {
    #[test]
    fn anything_may_be_asked(authority in any::<String>()) {
        let _ = Destination::parse(&authority);
    }

    #[test]
    fn what_is_accepted_is_an_authority_and_reads_the_same_again(authority in r"[\[\]a-f0-9:.@/%_ -]{0,20}(:[0-9]{1,6})?") {
        if let Ok(destination) = Destination::parse(&authority) {
            let again = destination.to_string();
            prop_assert_eq!(Destination::parse(&again), Ok(destination.clone()));
            let uri: http::uri::Authority = again.parse().unwrap();
            prop_assert_eq!(uri.port_u16(), Some(destination.port()));
            prop_assert_eq!(uri.host().trim_matches(['[', ']']), destination.host());
            prop_assert!(destination.port() > 0 && !destination.host().is_empty());
        }
    }
}
