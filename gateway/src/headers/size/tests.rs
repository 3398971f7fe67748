use std::pin::pin;

use http::header::HeaderName;
use http::{HeaderValue, Method};
use proptest::prelude::*;
use tokio::io::AsyncReadExt as _;
use tokio::io::duplex;

use super::*;

fn request(method: &str, path: &str, lines: &[(String, Vec<u8>)]) -> Request<()> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Request::builder().method(method).uri(format!("https://member{path}")).body(()).unwrap();
    for (name, value) in lines {
        let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
        request.headers_mut().append(name, HeaderValue::from_bytes(value).unwrap());
    }
    request
}

/// Length of the header block that h2 makes of `request`, as the first of its connection, without
/// `:scheme` and `:authority`.
async fn written(request: Request<()>) -> usize {
    const PREFACE: usize = 24;
    const CONTINUATION: u8 = 9;
    const END_HEADERS: u8 = 4;
    let (ours, mut theirs) = duplex(1 << 20);
    let (mut sender, connection) = h2::client::handshake(ours).await.unwrap();
    let (_answer, _upload) = sender.send_request(request, true).unwrap();
    let mut connection = pin!(connection);
    let reading = async {
        theirs.read_exact(&mut [0; PREFACE]).await.unwrap();
        let mut block = 0;
        loop {
            let mut head = [0; 9];
            theirs.read_exact(&mut head).await.unwrap();
            let [a, b, c, kind, flags, ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            theirs.read_exact(&mut payload).await.unwrap();
            if matches!(kind, 1 | CONTINUATION) {
                block += payload.len();
                if flags & END_HEADERS == END_HEADERS {
                    return block;
                }
            }
        }
    };
    let block = tokio::select! {
        block = reading => block,
        _ = &mut connection => panic!("the connection ended"),
    };
    // `:scheme: https` is in the static table, `:authority` has an indexed name.
    block - 1 - (2 + huffman(b"member"))
}

fn of_request(request: &Request<()>) -> Result<(), Unfit> {
    super::of_request(request).map(drop)
}

fn many(name: &str, value: &[u8], times: usize) -> Vec<(String, Vec<u8>)> {
    vec![(name.to_owned(), value.to_vec()); times]
}

#[test]
fn what_grows_is_measured_encoded_and_what_shrinks_as_it_is() {
    let check = |lines: &[(String, Vec<u8>)]| of_request(&request("GET", "/", lines));
    // 26 bits each.
    assert_eq!(check(&many("x", &vec![0xff; 150_000], 1)), Ok(()));
    assert_eq!(check(&many("x", &vec![0xff; 165_000], 1)), Err(Unfit::TooLarge));
    assert_eq!(check(&many("x", &[0xff; 1000], 165)), Err(Unfit::TooLarge));
    // Five bits each.
    assert_eq!(check(&many("x", &vec![b'0'; 524_000], 1)), Ok(()));
    assert_eq!(check(&many("x", &vec![b'0'; 524_300], 1)), Err(Unfit::TooLarge));
    // Lines count in addition to their contents.
    assert_eq!(check(&many("x", b"", 8000)), Ok(()));
    assert_eq!(check(&many("x-name-of-40-bytes-which-counts-each-time", b"", 8000)), Err(Unfit::TooLarge));
}

#[test]
fn method_and_path_count() {
    let half = many("x", &vec![b'0'; 460_000], 1);
    assert_eq!(of_request(&request("GET", "/", &half)), Ok(()));
    assert_eq!(of_request(&request("GET", &format!("/{}", "0".repeat(65_000)), &half)), Err(Unfit::TooLarge));
    assert_eq!(of_request(&request(&"A".repeat(65_000), "/", &half)), Err(Unfit::TooLarge));
}

#[test]
fn a_name_that_is_no_token_is_found_where_it_would_do_harm() {
    let mut lines = many("x\"y", b"", 1);
    assert_eq!(of_request(&request("GET", "/", &lines)), Ok(()), "in one frame");
    lines.extend(many("x", &[b'0'; ONE_FRAME], 1));
    assert_eq!(of_request(&request("GET", "/", &lines)), Err(Unfit::Name));
}

#[test]
fn five_thousand_groups_of_usual_length_may_be_impersonated() {
    let group = "oidc:organisation/department/team-1234";
    assert_eq!(of_request(&request("GET", "/api/v1/pods", &many("impersonate-group", group.as_bytes(), 5000))), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Otherwise a head that passes could be larger on the wire than the limit.
    #[test]
    fn no_head_is_longer_on_the_wire_than_was_reckoned(
        method in "[A-Z]{1,20}",
        path in "/[!$-;=?-Z_a-z~\\\\]{0,300}",
        lines in prop::collection::vec(
            ("[a-z0-9!#$%&'*+.^_`|~\"-]{1,40}", prop::collection::vec(
                prop_oneof![Just(b'\t'), 32..127_u8, 128..=255_u8], 0..400)),
            0..12,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let request = request(&method, &path, &lines);
        let path = request.uri().path_and_query().unwrap().as_str().to_owned();
        let reckoned = encoded([&method, &path], request.headers());
        let raw = method.len() + path.len() + lines.iter().map(|(n, v)| n.len() + v.len() + FIELD).sum::<usize>() + 2 * FIELD;
        let written = runtime.block_on(written(request));
        prop_assert!(written <= reckoned, "{written} bytes, reckoned {reckoned}");
        // Both short cuts hold: a head that passes unchecked is as small as they assume.
        prop_assert!(2 * written <= WORST * raw, "{written} bytes of {raw}");
    }
}
