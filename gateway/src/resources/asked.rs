//! What every read of our own resources asks for besides objects: their form.

use api::accept::{self, Shape};
use api::route::ClustersRoute;
use api::served::Form;
use api::table::IncludeObject;
use http::{Request, Uri};

use crate::error::Error;

/// The form that `request` accepts for what `route` returns.
pub fn form<B>(route: &ClustersRoute, request: &Request<B>) -> Result<Form, Error> {
    let shape = if matches!(route, ClustersRoute::List) { Shape::List } else { Shape::Object };
    form_of(shape, request)
}

pub fn form_of<B>(shape: Shape, request: &Request<B>) -> Result<Form, Error> {
    Ok(Form {
        representation: accept::representation(request.headers(), shape).map_err(|_| Error::NotAcceptable)?,
        include: IncludeObject::from_query(request.uri().query())
            .map_err(|_| Error::BadRequest("includeObject must be None, Metadata or Object"))?,
    })
}

/// The `resourceVersion` of a GET, as the query for the hub.
pub fn version(uri: &Uri) -> String {
    let version = api::query::first(uri.query(), "resourceVersion").unwrap_or_default();
    let valid = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    if valid { format!("resourceVersion={version}") } else { String::new() }
}
