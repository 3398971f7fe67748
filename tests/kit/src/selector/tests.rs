use proptest::prelude::*;
use serde_json::json;

use super::*;

const FIELDS: [&str; 3] = ["spec.nodeName", "status.phase", "status.podIP"];

fn selected(labels: &str, fields: &str) -> Result<bool, SelectorError> {
    let web = json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web", "example.com/tier": "front"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    });
    Ok(LabelSelector::parse(labels)?.matches(&web) && FieldSelector::parse(fields, &FIELDS)?.matches(&web))
}

#[test]
fn every_form_of_a_label_requirement_selects() {
    for hit in [
        "",
        "app",
        "!job",
        "app=web",
        "app==web,example.com/tier",
        "app=web,example.com/tier=front",
        "app!=Token",
        "job!=x",
        "app in (api, web),example.com/tier",
        "app notin (api,db),example.com/tier",
        "app notin (c)",
    ] {
        assert_eq!(selected(hit, ""), Ok(true), "{hit}");
    }
    for miss in [
        "job",
        "!app",
        "app=api",
        "app,example.com/tier=b",
        "app!=web",
        "app in (api)",
        "app=web,job",
        "app notin (web)",
    ] {
        assert_eq!(selected(miss, ""), Ok(false), "{miss}");
    }
    for broken in ["app in (a", "app within (a)", "two words", "=web", "app=we b", "app in", "!"] {
        assert_eq!(selected(broken, ""), Err(SelectorError::Syntax(broken.to_owned())), "{broken}");
    }
}

#[test]
fn fields_select_by_what_the_resource_declares() {
    for hit in [
        "metadata.name=web-1,metadata.namespace==shop,spec.nodeName=n1",
        "metadata.name!=other",
        "status.phase!=Failed,status.phase!=Succeeded",
        "status.podIP=",
    ] {
        assert_eq!(selected("", hit), Ok(true), "{hit}");
    }
    for miss in ["metadata.name=other", "metadata.name!=web-1", "status.phase=Pending"] {
        assert_eq!(selected("", miss), Ok(false), "{miss}");
    }
    assert_eq!(selected("", "spec.color=red"), Err(SelectorError::UnknownField("spec.color".into())));
    assert!(selected("", "metadata.name").unwrap_err().to_string().contains("metadata.name"));
    let named = FieldSelector::parse("metadata.name=a,spec.nodeName!=b", &FIELDS).unwrap();
    assert_eq!((named.required("metadata.name"), named.required("spec.nodeName")), (Some("a"), None));
}

proptest! {
    #[test]
    fn any_text_is_refused_or_parsed(labels in ".{0,60}", fields in ".{0,60}") {
        let _ = selected(&labels, &fields);
    }

    #[test]
    fn a_requirement_and_its_negation_never_agree(value in "[a-z]{1,3}") {
        prop_assert_ne!(selected(&format!("app={value}"), ""), selected(&format!("app!={value}"), ""));
    }
}
