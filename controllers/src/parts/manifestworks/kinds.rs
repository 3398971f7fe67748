//! The kinds of the hub that this part reads.

use delivery::work::GROUP;
use kube::api::ApiResource;

use crate::parts::hub;
use crate::sources::Kind;

pub const WORKS: Kind =
    Kind { group: GROUP, name: "ManifestWork", plural: "manifestworks", versions: &["v1"], is_custom: true };

pub fn works() -> ApiResource {
    hub::resource(WORKS.group, WORKS.versions[0], WORKS.name, WORKS.plural)
}
