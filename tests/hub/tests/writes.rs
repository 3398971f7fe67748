//! kubectl's changing commands: one script, in a namespace for each route, with the same output at
//! every step and the same objects in the end.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::compare::{self, Ways};
use crate::fixture::Fixture;

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: one}]}
";
const SETTINGS: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: red, size: small}}";
const SETTINGS_GREEN: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: green, size: small}}";
const MISSPELT: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: misspelt}, date: {colour: red}}";
const NOT_VALID: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_Valid}}";

/// `SCOPE` stands for the part of names that belongs to one route: the whole cluster has the kind.
const KIND: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.SCOPE.example.com}
spec:
  group: SCOPE.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .spec.colour}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
const WIDGET: &str = "{apiVersion: SCOPE.example.com/v1, kind: Widget, metadata: {name: first}, spec: {colour: red}}";

/// One step: exit code, command line, standard input. `-n <namespace of the route>` is added.
type Step = (i32, &'static str, &'static str);

const APPLY: &[Step] = &[
    (0, "apply -f -", SETTINGS),
    (0, "apply -f -", SETTINGS),
    (0, "diff -f -", SETTINGS),
    (1, "diff -f -", SETTINGS_GREEN),
    (0, "apply --dry-run=server -f -", SETTINGS_GREEN),
    (0, "get configmap settings -o jsonpath={.data}", ""),
    (0, "apply -f -", SETTINGS_GREEN),
    (1, "apply -f -", MISSPELT),
    (1, "apply -f -", NOT_VALID),
    (1, "create -f -", SETTINGS),
    (0, "replace -f -", SETTINGS),
    (1, "apply --server-side -f -", SETTINGS_GREEN),
    (0, "apply --server-side --force-conflicts --field-manager=tester -f -", SETTINGS_GREEN),
    (0, "apply --server-side --force-conflicts --field-manager=tester -f -", SETTINGS_GREEN),
    (1, "diff --server-side --force-conflicts --field-manager=tester -f -", SETTINGS),
    (0, "get configmap settings -o yaml --show-managed-fields", ""),
    (0, "delete -f -", SETTINGS),
    (1, "delete -f -", SETTINGS),
    (0, "delete -f - --ignore-not-found", SETTINGS),
    (1, "get configmap settings", ""),
];

const CHANGE: &[Step] = &[
    (0, "create configmap settings --from-literal=colour=red", ""),
    (0, r#"patch configmap settings --type=strategic -p {"data":{"colour":"blue"}}"#, ""),
    (0, r#"patch configmap settings --type=merge -p {"data":{"size":"large","colour":null}}"#, ""),
    (0, r#"patch configmap settings --type=json -p [{"op":"add","path":"/data/shape","value":"round"}]"#, ""),
    (1, r#"patch configmap settings --type=json -p [{"op":"test","path":"/data/shape","value":"flat"}]"#, ""),
    (1, r#"patch configmap absent --type=merge -p {"data":{}}"#, ""),
    (0, "label configmap settings tier=front", ""),
    (1, "label configmap settings tier=back", ""),
    (0, "label configmap settings tier=back --overwrite", ""),
    (0, "annotate configmap settings note=kept", ""),
    (0, "get configmap settings -o yaml", ""),
    (0, "create configmap other --from-literal=a=b", ""),
    (0, "label configmap other tier=back", ""),
    (0, "delete configmaps -l tier=back", ""),
    (0, "get configmaps -l tier=back", ""),
];

const WORKLOAD: &[Step] = &[
    (0, "apply -f -", DEPLOYMENT),
    (0, "wait deployment/web --for=condition=Available --timeout=60s", ""),
    (0, "scale deployment/web --replicas=3", ""),
    (1, "scale deployment/web --replicas=4 --current-replicas=1", ""),
    (0, "wait deployment/web --for=jsonpath={.status.readyReplicas}=3 --timeout=60s", ""),
    (0, "set image deployment/web main=two", ""),
    (0, "wait deployment/web --for=jsonpath={.status.updatedReplicas}=3 --timeout=60s", ""),
    (0, "rollout history deployment/web", ""),
    (0, "rollout undo deployment/web", ""),
    (0, "get deployment web -o jsonpath={.spec.template.spec.containers[0].image},{.spec.replicas}", ""),
    (1, "wait deployment/web --for=jsonpath={.spec.replicas}=9 --timeout=1s", ""),
    (0, "delete deployment web --cascade=foreground --timeout=60s", ""),
    (0, "wait pods -l app=web --for=delete --timeout=60s", ""),
    (0, "get pods -l app=web", ""),
];

const CUSTOM: &[Step] = &[
    (0, "apply -f -", KIND),
    (0, "wait crd/widgets.SCOPE.example.com --for=condition=Established --timeout=60s", ""),
    (0, "apply -f -", WIDGET),
    (0, "get widgets.SCOPE.example.com", ""),
    (0, r#"patch widgets.SCOPE.example.com first --type=merge -p {"spec":{"colour":"blue"}}"#, ""),
    (0, r#"patch widgets.SCOPE.example.com first --subresource=status --type=merge -p {"status":{"ready":true}}"#, ""),
    (0, "get widgets.SCOPE.example.com first -o yaml", ""),
    (0, "wait widgets.SCOPE.example.com/first --for=jsonpath={.status.ready}=true --timeout=10s", ""),
    (0, "delete crd widgets.SCOPE.example.com --timeout=60s", ""),
    (1, "get widgets.SCOPE.example.com", ""),
];

pub(crate) fn trials(fixture: &Arc<Fixture>, ways: Ways) -> Vec<Trial> {
    let trial = |what: &str, name: &'static str, steps: &'static [Step]| {
        ways.test(fixture, &format!("writes::{what}"), move |testbed| script(testbed, ways, name, steps))
    };
    let mut trials = vec![
        trial("apply, diff, replace, delete", "apply", APPLY),
        trial("scale, wait, set image, rollout", "workload", WORKLOAD),
    ];
    if ways == Ways::Dialled {
        trials.push(trial("create, patch, label, annotate", "change", CHANGE));
        trials.push(trial("a kind of one's own", "custom", CUSTOM));
    }
    trials
}

fn script(testbed: &Testbed, ways: Ways, name: &str, steps: &[Step]) -> Result<()> {
    for route in ways.all() {
        testbed.member.server.create_namespace(&format!("{name}-{}", ways.scope(route)))?;
    }
    for (number, &(status, line, stdin)) in steps.iter().enumerate() {
        compare::everywhere(testbed, ways, status, |kubectl, scope| {
            let words = line
                .split(' ')
                .map(|word| word.replace("SCOPE", scope))
                .chain(["-n".to_owned(), format!("{name}-{scope}")]);
            // The default prints the names and times of temporary files.
            kubectl
                .args(words)
                .stdin(stdin.replace("SCOPE", scope))
                .env("KUBECTL_EXTERNAL_DIFF", "diff -r -U1 --label=live --label=merged")
        })
        .with_context(|| format!("step {}: {line}", number + 1))?;
    }
    Ok(())
}
