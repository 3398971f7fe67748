use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn spec(rules: &str) -> String {
    format!("spec:\n  clientIdentityExchanger:\n    rules:\n{rules}")
}

fn problems(text: &str) -> Vec<String> {
    of_operator(text).err().map_or_else(Vec::new, |error| error.0)
}

#[test]
fn kubevelas_rule_is_read() {
    let text = "apiVersion: cluster.core.oam.dev/v1alpha1\nkind: ClusterGatewayProxyConfiguration\nspec:\n  \
                clientIdentityExchanger:\n    rules:\n    - name: super-user\n      source:\n        group: kubevela:ux\n      \
                type: PrivilegedIdentityExchanger\n";
    let (rules, remarks) = of_operator(text).unwrap();
    assert_eq!((rules.len(), remarks.len()), (1, 0));
}

#[test]
fn a_configuration_may_hold_no_rules() {
    for text in
        ["spec: {}", "spec:", "kind: ClusterGatewayProxyConfiguration", "spec: {clientIdentityExchanger: {}}", "{}"]
    {
        assert_eq!(of_operator(text).unwrap().0.len(), 0, "{text}");
    }
}

#[test]
fn every_problem_is_named_at_once() {
    let text = spec(
        "    - {name: external, type: ExternalIdentityExchanger, source: {}, url: https://x}\n    \
         - {name: unknown, type: Privileged, source: {}}\n    \
         - {source: {}}\n    \
         - {name: untargeted, type: StaticMappingIdentityExchanger, source: {}}\n    \
         - {name: groups only, type: StaticMappingIdentityExchanger, source: {}, target: {groups: [g]}}\n    \
         - {name: empty group, type: StaticMappingIdentityExchanger, source: {}, target: {user: u, groups: [g, '']}}\n    \
         - {name: two lines, type: StaticMappingIdentityExchanger, source: {}, target: {user: \"a\\nb\"}}\n    \
         - {name: pattern, type: PrivilegedIdentityExchanger, source: {userPattern: '(', groupPattern: '[a&&b]'}}\n    \
         - {name: large, type: PrivilegedIdentityExchanger, source: {clusterPattern: '\\pL{1000}'}}\n    \
         - {name: good, type: PrivilegedIdentityExchanger, source: {}}\n",
    );
    insta::assert_snapshot!(problems(&text).join("\n"));
}

#[test]
fn what_is_not_known_is_not_ignored() {
    for wrong in [
        "    - {name: r, type: PrivilegedIdentityExchanger, source: {users: [jane]}}\n",
        "    - {name: r, type: PrivilegedIdentityExchanger, source: {User: jane}}\n",
        "    - {name: r, type: PrivilegedIdentityExchanger, sources: {user: jane}}\n",
        "    - {name: r, type: PrivilegedIdentityExchanger, source: {user: }}\n",
        "    - {name: r, type: PrivilegedIdentityExchanger, source: {userPattern: null}}\n",
        "    - {name: r, type: PrivilegedIdentityExchanger, source: {user: [a]}}\n",
        "    - {name: r, type: PrivilegedIdentityExchanger, source: {user: a, user: b}}\n",
        "    - {name: r, type: StaticMappingIdentityExchanger, source: {}, target: {user: u, group: g}}\n",
    ] {
        let found = problems(&spec(wrong));
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert!(found[0].starts_with("not the expected YAML: ") && !found[0].contains('\n'), "{found:?}");
    }
    assert_eq!(problems("apiVersion: v1\nspec: {}"), ["apiVersion must be cluster.core.oam.dev/v1alpha1"]);
    assert_eq!(problems("kind: Secret\nspec: {}"), ["kind must be ClusterGatewayProxyConfiguration"]);
    for text in ["", " \n", "- a", "spec: [", "spec: {}\n---\nspec: {}"] {
        assert_eq!(problems(text).len(), 1, "{text:?}");
    }
}

#[test]
fn numbers_and_sizes_are_limited() {
    let rule = |source: &str| format!("    - {{type: PrivilegedIdentityExchanger, source: {source}}}\n");
    assert_eq!(of_operator(&spec(&rule("{user: a}").repeat(1000))).unwrap().0.len(), 1000);
    assert_eq!(problems(&spec(&rule("{user: a}").repeat(1001))), ["more than 1000 rules"]);
    let many = rule("{userPattern: a, groupPattern: b, clusterPattern: c}").repeat(334);
    assert_eq!(problems(&spec(&many)), ["more than 1000 patterns"]);
    let long = format!("spec: {{}} #{}", "x".repeat(LONGEST));
    assert_eq!(problems(&long), ["longer than 256 KiB"]);
}

#[test]
fn a_small_text_cannot_stand_for_a_large_one() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        let references = vec![format!("*a{before}"); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{references}]").unwrap();
    }
    let started = tokio::time::Instant::now();
    assert_eq!(problems(&text).len(), 1);
    assert!(problems(&"[".repeat(100_000)).len() == 1 && problems(&"{a: ".repeat(50_000)).len() == 1);
    // Written out, the first has a million million words: no machine is done with them in a minute,
    // the busiest is with this.
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

#[test]
fn messages_are_short_and_in_one_line() {
    let rule = format!("    - {{name: \"{}\\n\", type: \"{}\", source: {{}}}}\n", "n".repeat(500), "t".repeat(500));
    let brief = of_cluster(&spec(&rule.repeat(50)), "c1", false).unwrap_err().brief();
    assert!(brief.chars().count() <= BRIEF + 1 && !brief.contains('\n'), "{brief}");
    assert!(brief.starts_with("rule 1 (\"nnn"), "{brief}");
}

proptest! {
    #[test]
    fn no_text_brings_it_down(text in "(?s).{0,200}") {
        let _ = of_operator(&text);
    }

    #[test]
    fn no_rule_brings_it_down(key in "[a-zA-Z]{0,8}|userPattern|source", value in "[ -~]{0,30}") {
        let _ = of_cluster(&spec(&format!("    - {{type: PrivilegedIdentityExchanger, source: {{{key}: {value}}}}}\n")), "c", true);
    }
}
