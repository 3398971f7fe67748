//! Objects that are too large to be kept.

use kube::api::ApiResource;
use kube::core::ObjectMeta;
use register::Refused;
use register::ocm::Reach;
use register::reading::Waiting;
use serde_json::json;

use super::*;

/// Two of these are more than is kept.
const BUNDLE: usize = 35 << 10;

/// What `reader` says of an object as it is kept, without Secrets.
fn reading(reader: &dyn Reader, kind: &Kind, spec: &Value) -> Reading {
    cut(reader, kind, spec, false)
}

/// The same, with metadata that may have been too heavy to be read.
fn cut(reader: &dyn Reader, kind: &Kind, spec: &Value, is_cut: bool) -> Reading {
    let (group, version) = (kind.group, kind.versions[0]);
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.name.to_owned(),
        plural: kind.plural.to_owned(),
    };
    let mut object = DynamicObject::new("c1", &resource);
    object.metadata.uid = Some("u-1".to_owned());
    object.data = json!({ "spec": spec });
    reader.prune(&mut object);
    prune_metadata(&mut object, is_cut);
    let object = crate::calls::value(&object);
    assert!(object.to_string().len() < LARGEST, "it is kept");
    reader.read(&object, &[])
}

fn is_too_large(reading: &Reading) -> bool {
    matches!(reading, Reading::Refused(Refused::LongFields(_)))
}

#[test]
fn an_object_that_is_too_large_is_refused_for_that_and_a_no_stays_a_no() {
    let rules = || Arc::new(Rules::default());
    let ocm = ocm::Ocm { rules: rules(), credential: "cluster-gateway".to_owned(), reach: Reach::Auto };
    let managed = |accepts: bool, bytes: usize| {
        let config = |url: &str| json!({"url": url, "caBundle": "A".repeat(bytes)});
        let configs = [config("https://a"), config("https://b")];
        let spec = json!({"hubAcceptsClient": accepts, "managedClusterClientConfigs": configs});
        reading(&ocm, &ocm::KIND, &spec)
    };
    // What is refused keeps its registration.
    assert!(is_too_large(&managed(true, BUNDLE)));
    assert!(matches!(managed(false, BUNDLE), Reading::Waiting(Waiting::NotAccepted)));
    assert!(matches!(managed(true, BUNDLE / 2), Reading::Waiting(Waiting::NoToken)));
    let kubefed = ReferringReader::new(referring::KUBEFED, rules());
    let spec = json!({"apiEndpoint": "https://a", "secretRef": {"name": "s"}, "caBundle": "A".repeat(2 * BUNDLE)});
    assert!(is_too_large(&reading(&kubefed, &referring::KUBEFED_KIND, &spec)));
    let karmada = ReferringReader::new(referring::KARMADA, rules());
    let spec = json!({"syncMode": "Push", "proxyHeader": {"Proxy-Authorization": "A".repeat(2 * BUNDLE)}});
    assert!(is_too_large(&reading(&karmada, &referring::KARMADA_KIND, &spec)));
    let spec = json!({"syncMode": "Push"});
    assert!(!is_too_large(&reading(&karmada, &referring::KARMADA_KIND, &spec)));
    assert!(is_too_large(&cut(&karmada, &referring::KARMADA_KIND, &spec, true)), "a pause may be among what was cut");
}

/// Anybody with a bootstrap credential creates thousands, and labels without values take ten times
/// their bytes.
#[test]
fn of_a_cluster_that_is_not_accepted_only_that_is_kept_and_of_tiny_labels_none() {
    let ocm = ocm::Ocm { rules: Arc::default(), credential: "c".to_owned(), reach: Reach::Auto };
    let kept = |accepts: bool, labels: usize| {
        let mut object = DynamicObject { types: None, metadata: ObjectMeta::default(), data: Value::Null };
        object.data =
            json!({"spec": {"hubAcceptsClient": accepts, "managedClusterClientConfigs": [{"url": "https://a"}]}});
        object.labels_mut().extend((0..labels).map(|number| (number.to_string(), String::new())));
        ocm.prune(&mut object);
        prune_metadata(&mut object, false);
        (object.labels().len(), object.data["spec"].as_object().map_or(0, serde_json::Map::len))
    };
    assert_eq!([kept(true, 50), kept(true, 5000), kept(false, 50)], [(50, 2), (0, 2), (0, 1)]);
}
