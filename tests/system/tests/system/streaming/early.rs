//! An answer before the end of the upload, by a member that speaks HTTP/1.1: the rest of the upload
//! is of no use.

use kit::client::H1Error;
use system_tests::prelude::*;

use super::uploads::assert_refused_early;

across_dialects!(the_rest_of_a_refused_upload_is_not_carried);

async fn the_rest_of_a_refused_upload_is_not_carried(dialect: Dialect) {
    for client in [Http::H1, Http::H2] {
        refused(dialect, client).await;
    }
}

async fn refused(dialect: Dialect, client: Http) {
    // As Go's server does it: the connection closes after the answer, but only once bytes on their
    // way could arrive.
    let answer = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 16\r\n\r\nlimit is 3145728";
    let member = RawMember::always(Act::answer(answer, Act::ReadToEnd)).await;
    let testbed = dialect.testbed(&member).await;
    let mut connection = dialect.connect(&testbed, client).await.bearer(ADMIN);
    assert_refused_early(&mut connection, dialect).await;
    let seen = member.until(0, |seen| seen.caller_closed).await;
    assert!(seen.bytes_in < 1 << 20, "{client:?}: the upload goes on after its answer: {} bytes", seen.bytes_in);
    if client == Http::H1 {
        // The next bytes would be read as the rest of the body (RFC 9112 section 9.3).
        let end = connection.h1().head().await.expect_err("the connection ends");
        assert!(matches!(end, H1Error::NoAnswer | H1Error::Io(_)), "{end:?}");
    }
    let mut another = dialect.connect(&testbed, client).await.bearer(ADMIN);
    let again = another.try_call("GET", &dialect.path("/"), &[], b"").await;
    assert_eq!((again.expect("an answer").status, member.connection_count()), (413, 2), "{client:?}");
}
