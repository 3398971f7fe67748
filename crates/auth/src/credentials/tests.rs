//! Tests of what counts as a bearer token, and that any headers survive the removal of credentials.

use http::header::SEC_WEBSOCKET_PROTOCOL;
use proptest::prelude::*;

use super::protocol_token::BEARER_PROTOCOL;
use super::*;

#[test]
fn a_bearer_token_is_the_word_after_the_scheme() {
    for (line, token) in [
        ("Bearer abc", Some("abc")),
        ("bEARER abc", Some("abc")),
        ("\t Bearer abc def", Some("abc")),
        ("Bearer", None),
        ("Bearer  abc", None),
        ("Basic abc", None),
        ("", None),
    ] {
        let value = HeaderValue::from_bytes(line.as_bytes()).expect("a header value");
        assert_eq!(bearer(&value), token.map(str::as_bytes), "{line:?}");
    }
}

#[test]
fn a_token_is_never_printed() {
    assert!(!format!("{:?}", ProtocolToken::Token(b"secret".to_vec())).contains("115"));
}

proptest! {
    #[test]
    fn other_headers_stay_as_they_are(
        protocols in proptest::collection::vec("[ -~]{0,40}", 0..4),
        other in "[ -~]{0,40}",
    ) {
        prop_assume!(!protocols.iter().any(|protocol| protocol.contains("bearer.authorization")));
        let mut headers = HeaderMap::new();
        for protocol in &protocols {
            headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(protocol).expect("printable"));
        }
        headers.insert("x-remotely-related", HeaderValue::from_str(&other).expect("printable"));
        let before = headers.clone();
        Credentials::take(&mut headers, None);
        prop_assert_eq!(before, headers);
    }

    #[test]
    fn any_protocol_list_can_be_taken_apart(list in proptest::collection::vec(any::<u8>(), 0..80)) {
        let mut value = b"base64url.bearer.authorization.k8s.io.".to_vec();
        value.extend(list);
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let mut headers = HeaderMap::new();
            headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
            Credentials::take(&mut headers, None);
            let left = headers.get(SEC_WEBSOCKET_PROTOCOL).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
            prop_assert!(!left.starts_with(BEARER_PROTOCOL));
        }
    }
}
