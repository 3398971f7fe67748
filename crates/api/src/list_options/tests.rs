//! What lists and watches select, the refusals with their messages, and the query to the hub.

use super::*;
use crate::samples::{certificate_cluster, token_cluster};
use crate::secret::CREDENTIAL_TYPE_LABEL;
use crate::status::Status;

fn selected(query: &str) -> Vec<String> {
    let options = ListOptions::from_query(Some(query)).expect("valid options");
    let selectors = options.from_memory().expect("a list from memory");
    let clusters = [token_cluster("c1"), certificate_cluster("c2")];
    let selected = clusters.iter().filter(|cluster| selectors.matches(cluster.name.as_str(), &cluster.labels));
    selected.map(|cluster| cluster.name.to_string()).collect()
}

#[test]
fn selectors_choose_clusters() {
    let by_type = "labelSelector=cluster.core.oam.dev%2Fcluster-credential-type";
    for (query, expected) in [
        ("", &["c1", "c2"][..]),
        ("limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan", &["c1", "c2"]),
        ("fieldSelector=metadata.name%3Dc1", &["c1"]),
        ("fieldSelector=metadata.name!%3Dc1,metadata.namespace%3D", &["c2"]),
        ("fieldSelector=metadata.namespace%3Dx", &[]),
        (&format!("{by_type}%3DX509Certificate"), &["c2"]),
        (&format!("{by_type}%3DX509Certificate&fieldSelector=metadata.name%3Dc1"), &[]),
    ] {
        assert_eq!(selected(query), expected, "{query}");
    }
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    let list = |query| ListOptions::from_query(Some(query)).and_then(ListOptions::from_memory).expect_err(query);
    let watch = |query| WatchOptions::from_query(Some(query)).expect_err(query);
    let errors = [
        list("labelSelector=a%20b"),
        list("fieldSelector=nonsense"),
        list("fieldSelector=spec.x%3D1"),
        list("continue=abc"),
        list("limit=ten"),
        list("resourceVersion=abc"),
        list("resourceVersion=5&resourceVersionMatch=Exact"),
        list("resourceVersion=0&resourceVersionMatch=Exact"),
        list("resourceVersion=5&resourceVersionMatch=Other"),
        list("resourceVersionMatch=NotOlderThan"),
        list("resourceVersion=5&resourceVersionMatch=NotOlderThan&continue=abc"),
        list("sendInitialEvents=true"),
        watch("resourceVersion=abc"),
        watch("timeoutSeconds=soon"),
        watch("fieldSelector=spec.x%3D1"),
        watch("resourceVersionMatch=NotOlderThan"),
        watch("sendInitialEvents=true"),
        watch("sendInitialEvents=false&resourceVersionMatch=Exact"),
        watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=abc"),
        InvalidListOptions::TooOld("7".into()),
    ];
    let json = |error: InvalidListOptions| String::from_utf8(Status::from(error).to_json().to_vec());
    let lines: Result<String, _> = errors.into_iter().map(json).collect();
    insta::assert_snapshot!(lines.expect("UTF-8"));
}

#[test]
fn initial_events_come_when_asked_for_or_when_there_is_no_version() {
    for (query, initial, end) in [
        ("", true, false),
        ("resourceVersion=0", true, false),
        ("resourceVersion=5", false, false),
        ("resourceVersion=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true, true),
        ("sendInitialEvents&resourceVersionMatch=NotOlderThan", true, true),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", false, false),
    ] {
        let options = WatchOptions::from_query(Some(query)).expect(query);
        assert_eq!((options.wants_initial_events(), options.wants_their_end()), (initial, end), "{query}");
    }
}

#[test]
fn the_hub_is_asked_for_the_same() {
    let list = |query| ListOptions::from_query(Some(query)).expect(query).to_hub(CREDENTIAL_TYPE_LABEL, true);
    let watch = |query| WatchOptions::from_query(Some(query)).expect(query).to_hub(CREDENTIAL_TYPE_LABEL, false, 1800);
    let selectors = "labelSelector=a%20in%20(b%2Cc)&fieldSelector=metadata.name!%3Dx%5C%2Cy%2Cmetadata.namespace%3D";
    let queries = [
        list(""),
        list("labelSelector=%20"),
        list(selectors),
        list("limit=2&continue=a%2Bb%3D%3D&timeoutSeconds=5"),
        list("resourceVersion=7&resourceVersionMatch=Exact"),
        watch(""),
        watch(selectors),
        watch("resourceVersion=7&timeoutSeconds=5&allowWatchBookmarks=false"),
        watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        ListOptions::default().to_hub("", true),
    ];
    insta::assert_snapshot!(queries.join("\n"));
}

proptest::proptest! {
    #[test]
    fn what_the_hub_is_asked_is_valid_and_selects_no_less(
        labels in "[a-z=!, ()]{0,12}", fields in "(metadata\\.name(=|!=)[a-z1,\\\\]{0,4},?){0,2}", limit in proptest::num::i64::ANY,
    ) {
        let query = format!(
            "labelSelector={}&fieldSelector={}&limit={limit}",
            percent_encoding::utf8_percent_encode(&labels, percent_encoding::NON_ALPHANUMERIC),
            percent_encoding::utf8_percent_encode(&fields, percent_encoding::NON_ALPHANUMERIC),
        );
        if let Ok(options) = ListOptions::from_query(Some(&query)) {
            let again = ListOptions::from_query(Some(&options.to_hub("", true))).expect("accepted before");
            proptest::prop_assert_eq!(again.limit, options.limit);
            for name in ["", "c1", "a", "1,a", "\\"] {
                proptest::prop_assert!(again.selectors.matches_name(name) || !options.selectors.matches_name(name));
            }
        }
    }
}
