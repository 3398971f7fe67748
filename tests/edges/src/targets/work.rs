//! Any `ManifestWork`, with any object of a member and any role there: each manifest is read in its
//! place, a request is about the object that it names, and a status reads as it was written.
//!
//! Input: changes of a good work, `/object/work`, of the member's object, `/object/member`, and of
//! a role there, `/object/role` (`sources::changed`).

use delivery::executor::{self, rules_of};
use delivery::manifests::{self, Lookup, Manifest, Resource};
use delivery::ownership::{Claim, Owner};
use delivery::strategy::{Action, DesiredObject, FIELD_MANAGER, Known, plan};
use delivery::work::{ManifestWorkSpec, ManifestWorkStatus, options};
use serde_json::{Value, json};

use crate::sources::changed;

pub const WORDS: &[&str] = &[
    "\n/object/work/spec/workload/manifests/0/",
    "\n/object/work/spec/workload/manifests/1 ",
    "\n/object/work/spec/workload/manifests/0/metadata/name ",
    "\n/object/work/spec/workload/manifests/0/metadata/namespace ",
    "\n/object/work/spec/workload/manifests/0/metadata/generateName ",
    "\n/object/work/spec/workload/manifests/0/kind Secret",
    "\n/object/work/spec/workload/manifests/0/stringData/a ",
    "\n/object/work/spec/workload/manifests/0/apiVersion ",
    "\n/object/work/spec/manifestConfigs/0/updateStrategy/type ",
    "\n/object/work/spec/manifestConfigs/0/updateStrategy/serverSideApply/",
    "ignoreFields [{\"condition\":\"OnSpokePresent\",\"jsonPaths\":[\".data.a\"]}]",
    "ignoreFields [{\"jsonPointers\":[\"/data/a\",\"/metadata/labels/0\"]}]",
    "fieldManager work-agent-x",
    "force true",
    "ServerSideApply",
    "CreateOnly",
    "ReadOnly",
    "Update",
    "*",
    "../x",
    "\n/object/work/status/conditions/0/",
    "\n/object/work/status/resourceStatus/manifests/0/",
    "statusFeedback/values/0/fieldValue/integer 1",
    "lastTransitionTime 2027-01-15T08:00:00Z",
    "\n/object/member/metadata/managedFields/0/fieldsV1/f:data/",
    "\n/object/member/metadata/managedFields/0/manager work-agent",
    "\n/object/member/metadata/ownerReferences/0/uid u",
    "\n/object/member/metadata/labels/",
    "\n/object/member/data ",
    "k:{\"name\":\"a\"}",
    "v:\"x\"",
    "\n/object/role/rules/0/verbs/1 ",
    "\n/object/role/rules/1 {\"verbs\":[\"*\"],\"nonResourceURLs\":[\"/a\",\"/b\"]}",
    "null",
    "{}",
    "[]",
    "\"\"",
    "0",
];

/// Fields that only the API server sets.
const NOT_WANTED: [&str; 4] = ["uid", "resourceVersion", "managedFields", "ownerReferences"];

fn good() -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"},
        "data": {"a": "b"}});
    let fields = json!({"f:data": {"f:a": {}}});
    let managed = json!([{"manager": "work-agent", "operation": "Apply", "fieldsV1": fields}]);
    let member = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "uid": "m",
        "resourceVersion": "7", "managedFields": managed}, "data": {"a": "b", "c": "d"}});
    let identifier = json!({"resource": "configmaps", "name": "*", "namespace": "n"});
    let work = json!({
        "spec": {"workload": {"manifests": [manifest]}, "manifestConfigs": [{"resourceIdentifier": identifier,
            "updateStrategy": {"type": "ServerSideApply"}}]},
        "status": {"conditions": [{"type": "Applied", "status": "True"}]}});
    let role = json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}]});
    json!({"object": {"work": work, "member": member, "role": role}, "secret": {}})
}

pub fn check(input: &[u8]) {
    let Some(pair) = changed(good(), input) else { return };
    let (work, member) = (&pair.object["work"], &pair.object["member"]);
    if let Ok(items) = rules_of(&pair.object["role"], "n") {
        assert!(items.len() <= executor::ITEMS);
    }
    if let Ok(status) = serde_json::from_value::<ManifestWorkStatus>(work["status"].clone()) {
        let written = serde_json::to_value(&status).expect("JSON");
        assert_eq!(serde_json::from_value::<ManifestWorkStatus>(written).expect("it was read before"), status);
    }
    let Ok(spec) = serde_json::from_value::<ManifestWorkSpec>(work["spec"].clone()) else { return };
    let manifests = manifests::read(&spec.workload.manifests, kinds);
    assert_eq!(manifests.len(), spec.workload.manifests.len());
    let ranked = manifests::ranked(&manifests);
    assert_eq!(ranked.iter().map(|(_, all)| all.len()).sum::<usize>(), manifests.len());
    for (ordinal, manifest) in manifests.iter().enumerate() {
        assert_eq!(manifest.ordinal, ordinal);
        let Ok(object) = &manifest.object else { continue };
        is_clean(manifest, object);
        let Ok(strategy) = options(&manifest.identity(), &spec.manifest_configs).strategy() else { continue };
        for (claim, observed) in [(Claim::Own, None), (Claim::Own, Some(member)), (Claim::Release, Some(member))] {
            for known in [Known::Nothing, Known::Applied] {
                let wanted = DesiredObject { object, owner: &owner(), claim, strategy: &strategy, known };
                is_of(object, plan(&wanted, observed));
            }
        }
    }
}

fn kinds(_: &str, _: &str, kind: &str) -> Lookup {
    let found = |name: &str, is_namespaced| Lookup::Found(Resource { name: name.to_owned(), is_namespaced });
    match kind {
        "ConfigMap" => found("configmaps", true),
        "Secret" => found("secrets", true),
        "Node" => found("nodes", false),
        "" | "Unknown" => Lookup::Unknown("why".to_owned()),
        _ => Lookup::Missing,
    }
}

fn owner() -> Owner {
    let [api_version, kind, name, uid] = ["w/v1", "AppliedManifestWork", "a", "u"].map(str::to_owned);
    Owner { api_version, kind, name, uid }
}

/// Its path is of no other object, it has nothing that is not wanted, and to read it again changes
/// nothing.
fn is_clean(manifest: &Manifest, object: &Value) {
    manifest.identity().check(&manifest.version).expect("parts of a path");
    assert!(NOT_WANTED.iter().all(|field| object["metadata"].get(field).is_none()) && object.get("status").is_none());
    let again = manifests::read(std::slice::from_ref(object), kinds);
    assert_eq!(again[0].object.as_ref(), Ok(object));
}

fn is_of(wanted: &Value, action: Action) {
    let body = match action {
        Action::Create(body) | Action::Replace(body) => body,
        Action::Apply { object, manager, .. } => {
            assert!(manager.starts_with(FIELD_MANAGER) && manager.len() <= 128);
            object
        }
        Action::PatchOwners(_) | Action::Read | Action::Nothing | Action::Refused(_) => return,
    };
    for pointer in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
        assert_eq!(body.pointer(pointer), wanted.pointer(pointer), "{pointer}");
    }
}
