//! What a request says of its trace, as it is read, for tests on generated headers. No interface of
//! the library: it follows the code.

use http::HeaderMap;

use crate::parent;

/// What is sent on of the span that `headers` name. `None`: they name none.
pub fn continued(headers: &HeaderMap) -> Option<HeaderMap> {
    let span = parent::read(headers)?;
    let mut sent = HeaderMap::new();
    parent::write(&span, &mut sent);
    Some(sent)
}
