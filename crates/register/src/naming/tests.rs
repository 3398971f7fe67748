use super::*;

fn named(template: &str, namespace: Option<&str>, name: &str) -> Result<String, InvalidClusterName> {
    Template::parse(template).unwrap().name(namespace, name).map(|name| name.as_str().to_owned())
}

#[test]
fn names_are_made_of_the_objects_own() {
    for (template, expected) in [
        ("{name}", "c1"),
        ("{namespace}.{name}", "ns.c1"),
        ("capi-{name}.{namespace}-x", "capi-c1.ns-x"),
        ("{name}{name}", "c1c1"),
        ("{namespace}", "ns"),
    ] {
        assert_eq!(named(template, Some("ns"), "c1").as_deref(), Ok(expected), "{template}");
    }
    assert_eq!(Template::default().name(None, "c1").unwrap().as_str(), "c1");
}

#[test]
fn templates_are_refused_at_start() {
    for (template, expected) in [
        ("", InvalidTemplate::Constant),
        ("c1", InvalidTemplate::Constant),
        ("{name", InvalidTemplate::Brace),
        ("name}", InvalidTemplate::Brace),
        ("{name}}", InvalidTemplate::Brace),
        ("}{name}", InvalidTemplate::Brace),
        ("{{name}}", InvalidTemplate::Placeholder),
        ("{Name}", InvalidTemplate::Placeholder),
        ("{ name }", InvalidTemplate::Placeholder),
        ("{}", InvalidTemplate::Placeholder),
        ("A-{name}", InvalidTemplate::Characters),
        ("{namespace}/{name}", InvalidTemplate::Characters),
        ("{namespace}_{name}", InvalidTemplate::Characters),
    ] {
        assert_eq!(Template::parse(template), Err(expected), "{template}");
    }
    assert!(InvalidTemplate::Placeholder.to_string().contains("{namespace} and {name}"));
}

#[test]
fn what_no_cluster_can_be_called_is_refused() {
    let long = "n".repeat(250);
    for (template, namespace, name) in
        [("{name}", None, ""), ("-{name}", None, "c1"), ("{namespace}.{name}", Some("n.s."), "c1")]
    {
        let refused = named(template, namespace, name).unwrap_err();
        assert!(matches!(refused, InvalidClusterName::Name(_)), "{template} {name}");
    }
    assert!(matches!(named("{namespace}.{name}", Some("ns1"), &long), Err(InvalidClusterName::Name(_))));
    assert!(named("{namespace}.{name}", Some("ns"), &long).is_ok(), "253 characters are the most");
    assert_eq!(named("{name}", Some("ns"), "local"), Err(InvalidClusterName::Hub));
    assert_eq!(named("lo{name}", None, "cal"), Err(InvalidClusterName::Hub));
    assert!(named("{namespace}.{name}", Some("local"), "local").is_ok());
}

#[test]
fn an_object_in_no_namespace_has_none_in_its_name() {
    let template = Template::parse("{namespace}.{name}").unwrap();
    assert!(template.has_namespace() && !Template::default().has_namespace());
    let refused = template.name(None, "c1").unwrap_err();
    assert_eq!(refused, InvalidClusterName::NoNamespace);
    assert!(refused.to_string().contains("--name-template has {namespace}"), "{refused}");
}

#[test]
fn names_of_the_gateways_own_secrets_are_refused() {
    let template = Template::default().without(&["cg".to_owned(), "tunnel-agent".to_owned()]);
    for name in ["cg", "cg-tls", "cg-tunnel-frontends-tls", "tunnel-agent-berlin"] {
        assert_eq!(template.name(None, name), Err(InvalidClusterName::Reserved), "{name}");
    }
    for name in ["cgx", "a-cg-b"] {
        assert_eq!(template.name(None, name).unwrap().as_str(), name);
    }
}
