//! Open Cluster Management's kinds as the chart installs them: they behave like upstream's own, are
//! installed only where there are none, and are never removed.

mod documents;

use hub_tests::prelude::*;
use hub_tests::tools;
use libtest_mimic::Trial;
use parking_lot::{Mutex, MutexGuard};

use self::documents::{Document, documents};
use crate::fixture::{Fixture, Planes, on_hub, rendering};
use crate::installed::{Installed, RELEASE};

/// Upstream's module, and the files of the kinds that the chart installs.
const MODULE: &str = "open-cluster-management.io/api";
const FILES: [&str; 6] = [
    "cluster/v1/0000_00",
    "cluster/v1alpha1/0000_05",
    "cluster/v1beta1/0000_0",
    "cluster/v1beta2/0000_0",
    "work/v1/0000_00",
    "work/v1alpha1/0000_00",
];
const KINDS: [&str; 8] = [
    "addonplacementscores.cluster.open-cluster-management.io",
    "managedclusters.cluster.open-cluster-management.io",
    "managedclustersetbindings.cluster.open-cluster-management.io",
    "managedclustersets.cluster.open-cluster-management.io",
    "manifestworkreplicasets.work.open-cluster-management.io",
    "manifestworks.work.open-cluster-management.io",
    "placementdecisions.cluster.open-cluster-management.io",
    "placements.cluster.open-cluster-management.io",
];
const VALUES: &str = "--set=controllers.enabled=true,controllers.parts.placement=true";
/// Values for renderings without a hub to ask.
const RENDERED: &str = "--set=controllers.enabled=true,controllers.parts.placement=true,controllers.crds=always";
const ESTABLISHED: &str = "wait --for=condition=Established crd --all --timeout=30s";
/// The kind that the controllers install on members, and upstream's file of it.
const MEMBERS: &str = include_str!("../../../../controllers/src/parts/manifestworks/definition.json");
const APPLIED: &str = "work/v1/0000_01";
/// Fields that differ between two equal objects.
const OWN: [&str; 4] = ["uid", "resourceVersion", "creationTimestamp", "managedFields"];

/// Tests take turns, because there is one hub.
static TURN: Mutex<()> = Mutex::new(());

/// All kinds on the hub, applied without helm.
pub(crate) struct Kinds<'p> {
    planes: &'p Planes,
    _turn: MutexGuard<'static, ()>,
}

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        rendering(fixture, "kinds::fields, defaults, rules and columns are upstream's", |helm, _| {
            let values = |values: &str| ["--set=image.repository=x".to_owned(), values.to_owned()];
            let unasked = helm.template("door", "vela-system", &values(VALUES))?;
            let is_kind = |object: &Value| object["kind"] == "CustomResourceDefinition";
            ensure!(!unasked.iter().any(is_kind), "nobody knows what the hub has");
            same_fields(&helm.template("door", "vela-system", &values(RENDERED))?)
        }),
        rendering(fixture, "kinds::the one that members get is upstream's", |_, _| {
            let (ours, theirs): (Value, Value) =
                (serde_json::from_str(MEMBERS)?, serde_saphyr::from_str(&tools::kinds(MODULE, &[APPLIED])?)?);
            ensure!(ours["metadata"]["name"] == theirs["metadata"]["name"], "{}", ours["metadata"]);
            same_definition(&ours, &theirs)
        }),
        on_hub(fixture, "kinds::they do as upstream's, come where there are none, and stay", |planes| {
            same_answers(planes).context("the same answers")?;
            let _turn = TURN.lock();
            brought(planes).context("where there are none")
        }),
    ]
}

/// Compares field by field, except the texts for people, which are our own.
fn same_fields(objects: &[Value]) -> Result<()> {
    let upstream: Vec<Value> = serde_saphyr::from_multiple(&tools::kinds(MODULE, &FILES)?)?;
    let ours = |name: &Value| objects.iter().find(|object| object["metadata"]["name"] == *name);
    let mut names = Vec::new();
    for theirs in upstream.iter().filter(|definition| definition["kind"] == "CustomResourceDefinition") {
        let name = &theirs["metadata"]["name"];
        let ours = ours(name).with_context(|| format!("{name} is not brought"))?;
        ensure!(ours["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", "{name} is taken away");
        same_definition(ours, theirs)?;
        names.push(name.as_str().unwrap_or_default());
    }
    names.sort_unstable();
    ensure!(names == KINDS, "{names:?}");
    Ok(())
}

fn same_definition(ours: &Value, theirs: &Value) -> Result<()> {
    let name = &theirs["metadata"]["name"];
    for field in ["group", "scope", "names"] {
        ensure!(ours["spec"][field] == theirs["spec"][field], "{name}: {field}: {}", ours["spec"][field]);
    }
    let [of_ours, of_theirs] = [ours, theirs].map(|one| meaning(&one["spec"]["versions"]));
    ensure!(!of_theirs[0]["schema"].is_null(), "{name} has no schema: {theirs}");
    ensure!(of_ours == of_theirs, "{name} differs: {of_ours}, upstream's {of_theirs}");
    Ok(())
}

/// A schema without texts for people, and with unordered lists sorted.
fn meaning(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let is_text = |name: &str, value: &Value| value.is_string() && ["description", "message"].contains(&name);
            let kept = fields.iter().filter(|(name, value)| !is_text(name, value));
            kept.map(|(name, value)| (name.clone(), if name == "required" { sorted(value) } else { meaning(value) }))
                .collect()
        }
        Value::Array(items) => items.iter().map(meaning).collect(),
        other => other.clone(),
    }
}

fn sorted(names: &Value) -> Value {
    let mut names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    names.sort_unstable();
    json!(names)
}

/// Upstream's kinds are on the member, ours on the hub.
fn same_answers(planes: &Planes) -> Result<()> {
    let kinds = Kinds::bring(planes)?;
    let theirs = planes.member.kubectl();
    theirs.args(["apply", "--server-side", "-f", "-"]).stdin(tools::kinds(MODULE, &FILES)?).run()?.success()?;
    theirs.ok(ESTABLISHED)?;
    for server in [&planes.hub.server, &planes.member] {
        server.kubectl().ok("create namespace kinds")?;
    }
    let (mut refusals, mut wrong) = (0, Vec::new());
    for (index, document) in documents().iter().enumerate() {
        let [ours, theirs] =
            [&planes.hub.server, &planes.member].map(|server| answer(&server.kubectl(), document, index));
        let (ours, theirs) = (ours?, theirs?);
        let is_refused = ours["refused"].is_string();
        refusals += usize::from(is_refused);
        if ours != theirs || is_refused != document.is_refused {
            wrong.push(format!("{document:?}: ours {ours}, upstream's {theirs}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(refusals > 20, "{refusals} are refused");
    theirs.ok(&format!("delete crd {}", KINDS.join(" ")))?;
    kinds.delete()
}

/// What a server stores for a document, and prints of it; or its refusal.
fn answer(kubectl: &hub_tests::kubectl::Kubectl, document: &Document, index: usize) -> Result<Value> {
    let name = format!("row-{index}");
    let object = document.object(&name);
    let created = kubectl.args(["create", "-o", "json", "-f", "-"]).stdin(object.to_string()).run()?;
    if created.status != 0 {
        return Ok(json!({"refused": told(&created.stderr)}));
    }
    let mut stored: Value = serde_json::from_str(&created.stdout)?;
    if let Some(status) = &document.status {
        let patch = json!({"status": status}).to_string();
        let words = ["patch", document.resource, &name, "-n", "kinds", "--subresource=status", "--type=merge"];
        let patched = kubectl.args(words.into_iter().chain(["-o", "json", "-p", &patch])).run()?;
        if patched.status != 0 {
            return Ok(json!({"refused": told(&patched.stderr)}));
        }
        stored = serde_json::from_str(&patched.stdout)?;
    }
    if let Some(metadata) = stored["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN.contains(&field.as_str()));
    }
    let printed = kubectl.ok(&format!("get {} {name} -n kinds", document.resource))?;
    Ok(json!({"stored": stored, "printed": hub_tests::mask::mask(&printed, &[])}))
}

/// The one rule with a text of its own differs from upstream's.
fn told(refusal: &str) -> String {
    let texts = ["a rule of type CEL needs the name of its condition", "Condition is required for CEL rules"];
    texts.iter().fold(refusal.to_owned(), |told, text| told.replace(text, "<rule>"))
}

/// A release beside another owner's definition, and other releases after it.
fn brought(planes: &Planes) -> Result<()> {
    let kubectl = planes.hub.server.kubectl();
    let foreign = tools::kinds(MODULE, &["cluster/v1/0000_00"])?;
    kubectl.args(["apply", "--server-side", "-f", "-"]).stdin(foreign).run()?.success()?;
    let theirs = || kubectl.ok(&format!("get crd {} -o jsonpath={{.metadata.uid}}/{{.metadata.generation}}", KINDS[1]));
    let before = theirs()?;
    let release = Installed { planes, namespace: "kinds-first" };
    release.helm("install", &[VALUES.to_owned()])?;
    ensure!(theirs()? == before, "somebody else's definition was written");
    let brought = planes.helm.args(["get", "manifest", RELEASE, "-n", release.namespace]).run()?.success()?;
    let is_brought = |text: &str, kind: &str| text.contains(&format!("\n  name: {kind}\n"));
    ensure!(!is_brought(&brought, KINDS[1]) && is_brought(&brought, KINDS[7]), "{brought}");
    kubectl.ok(ESTABLISHED)?;
    let kept = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "kept", "namespace": release.namespace}, "spec": {}});
    planes.hub.apply(&[kept])?;
    let uid = || kubectl.ok(&format!("get placement kept -n {} -o jsonpath={{.metadata.uid}}", release.namespace));
    let placement = uid()?;

    // A release updates its own definitions; without the value, or the part, they stay.
    let placements = KINDS[7];
    kubectl.ok(&format!("annotate crd {placements} helm.sh/resource-policy-"))?;
    release.helm("upgrade", &["--reuse-values".to_owned(), "--set=replicas=3".to_owned()])?;
    let policy = "-o jsonpath={.metadata.annotations.helm\\.sh/resource-policy}";
    ensure!(kubectl.ok(&format!("get crd {placements} {policy}"))? == "keep", "it is not brought up to date");
    let again = planes.helm.args(["get", "manifest", RELEASE, "-n", release.namespace]).run()?.success()?;
    ensure!(is_brought(&again, KINDS[7]), "it lets go of its own");
    taken_over(&release, &uid)?;
    for value in ["controllers.crds=false", "controllers.enabled=false"] {
        release.helm("upgrade", &["--reuse-values".to_owned(), format!("--set={value}")])?;
        ensure!(uid()? == placement, "{value} took it away");
    }
    release.helm("upgrade", &["--reuse-values".to_owned(), format!("{VALUES},controllers.crds=true")])?;
    release.uninstall()?;
    ensure!(uid()? == placement, "the end of the release took it away");
    // Another release uses the existing definitions; the same one, installed again, gets its own
    // back.
    let other = Installed { planes, namespace: "kinds-second" };
    other.helm("install", &[VALUES.to_owned()]).context("another release")?;
    other.uninstall()?;
    release.helm("install", &[VALUES.to_owned()]).context("the same release again")?;
    ensure!(uid()? == placement && theirs()? == before);
    release.uninstall()?;
    kubectl.ok(&format!("delete crd {}", KINDS.join(" "))).map(drop)
}

/// Definitions that another owner has taken over since, with and without helm's annotations.
fn taken_over(release: &Installed<'_>, uid: &dyn Fn() -> Result<String>) -> Result<()> {
    let (kubectl, placement, kind) = (release.planes.hub.server.kubectl(), uid()?, KINDS[7]);
    let upgrade = |more: &str| release.helm("upgrade", &["--reuse-values".to_owned(), format!("--set={more}")]);
    let names = "meta.helm.sh/release-name- meta.helm.sh/release-namespace-";
    // Without the annotations, the release keeps its definition.
    kubectl.ok(&format!("annotate crd {kind} helm.sh/resource-policy- {names}"))?;
    let told = format!("{:#}", upgrade("controllers.crds=false").err().context("it would have been deleted")?);
    ensure!(told.contains(kind) && told.contains("has lost its annotation helm.sh/resource-policy"), "{told}");
    upgrade("replicas=2")?;
    ensure!(uid()? == placement, "the definition was deleted");
    // Another manager's changes to the definition stay.
    let columns = json!([{"op": "add", "path": "/spec/names/categories", "value": ["theirs"]}]).to_string();
    let words = ["patch", "crd", kind, "--field-manager=theirs", "--type=json", "-p", &columns];
    kubectl.args(words).run()?.success()?;
    kubectl.ok(&format!("annotate crd {kind} helm.sh/resource-policy-"))?;
    let told = format!("{:#}", upgrade("replicas=3").err().context("somebody else's would have been deleted")?);
    ensure!(told.contains(&format!("kubectl annotate crd {kind} helm.sh/resource-policy=keep")), "{told}");
    kubectl.ok(&format!("annotate crd {kind} helm.sh/resource-policy=keep"))?;
    upgrade("replicas=3")?;
    let categories = kubectl.ok(&format!("get crd {kind} -o jsonpath={{.spec.names.categories}}"))?;
    ensure!(uid()? == placement && categories.contains("theirs"), "{categories}");
    Ok(())
}

// === impl Kinds ===

impl<'p> Kinds<'p> {
    pub(crate) fn bring(planes: &'p Planes) -> Result<Self> {
        let turn = TURN.lock();
        let mut kinds = planes.helm.template(RELEASE, "vela-system", &[RENDERED.to_owned()])?;
        kinds.retain(|object| object["kind"] == "CustomResourceDefinition");
        planes.hub.apply(&kinds)?;
        planes.hub.server.kubectl().ok(ESTABLISHED)?;
        Ok(Self { planes, _turn: turn })
    }

    /// There are none of the kinds: a release is about to install them.
    pub(crate) fn none(planes: &'p Planes) -> Self {
        Self { planes, _turn: TURN.lock() }
    }

    /// Waits until they can be used.
    pub(crate) fn wait(&self) -> Result<()> {
        let kubectl = self.planes.hub.server.kubectl();
        kubectl.ok(&format!("get crd {}", KINDS.join(" ")))?;
        kubectl.ok(ESTABLISHED).map(drop)
    }

    pub(crate) fn delete(self) -> Result<()> {
        self.planes.hub.server.kubectl().ok(&format!("delete crd {}", KINDS.join(" "))).map(drop)
    }
}
