//! Open Cluster Management's kinds as the chart installs them: they behave like upstream's own, are
//! installed only where there are none, and are never removed.

mod documents;

use hub_tests::control_plane::ApiServer;
use hub_tests::mask::mask;
use hub_tests::prelude::*;
use hub_tests::tools;
use libtest_mimic::Trial;
use parking_lot::{Mutex, MutexGuard};

use self::documents::{Document, documents};
use crate::fixture::{Fixture, Planes, namespace, on_hub, rendering};
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
/// Time for definitions to be established.
const SOON: Duration = Duration::from_secs(30);
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
    planes.member.apply_text(&tools::kinds(MODULE, &FILES)?)?;
    for server in [&planes.hub.server, &planes.member] {
        server.create(&[namespace("kinds")])?;
    }
    let (mut refusals, mut wrong) = (0, Vec::new());
    for (index, document) in documents().iter().enumerate() {
        let [ours, theirs] = [&planes.hub.server, &planes.member].map(|server| answer(server, document, index));
        let (ours, theirs) = (ours?, theirs?);
        let is_refused = ours["refused"].is_string();
        refusals += usize::from(is_refused);
        if ours != theirs || is_refused != document.is_refused {
            wrong.push(format!("{document:?}: ours {ours}, upstream's {theirs}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(refusals > 20, "{refusals} are refused");
    planes.member.delete(&format!("crd {}", KINDS.join(" ")))?;
    kinds.delete()
}

/// What a server stores for a document, and has kubectl print of it; or its refusal. The requests
/// are those of `kubectl create`, `patch --subresource=status` and `get`.
fn answer(server: &ApiServer, document: &Document, index: usize) -> Result<Value> {
    let name = format!("row-{index}");
    let all = document.path();
    let create = format!("{all}?fieldManager=kubectl-create&fieldValidation=Strict");
    let created = server.ask(&Method::POST, &create, "application/json", &document.object(&name))?;
    if created.status != StatusCode::CREATED {
        return Ok(json!({"refused": told(&created)?}));
    }
    let mut stored = created.json()?;
    if let Some(status) = &document.status {
        let patch = format!("{all}/{name}/status?fieldManager=kubectl-patch");
        let status = json!({"status": status});
        let patched = server.ask(&Method::PATCH, &patch, "application/merge-patch+json", &status)?;
        if patched.status != StatusCode::OK {
            return Ok(json!({"refused": told(&patched)?}));
        }
        stored = patched.json()?;
    }
    if let Some(metadata) = stored["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN.contains(&field.as_str()));
    }
    Ok(json!({"stored": stored, "printed": printed(&server.table(&format!("{all}/{name}"))?)?}))
}

/// The columns of a table of one row, and its cells.
fn printed(table: &Value) -> Result<String> {
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let cells = table["rows"][0]["cells"].as_array().context("no row")?;
    let column = |column: &Value| format!("{} {} {}", column["name"], column["type"], column["priority"]);
    let lines: Vec<String> = columns.iter().map(column).chain(cells.iter().map(Value::to_string)).collect();
    Ok(mask(&lines.join("\n"), &[]))
}

/// The message of a refusal. The one rule with a text of its own differs from upstream's.
fn told(refusal: &Response) -> Result<String> {
    let status = refusal.json()?;
    ensure!(refusal.status.is_client_error() && status["message"].is_string(), "no refusal: {status}");
    let texts = ["a rule of type CEL needs the name of its condition", "Condition is required for CEL rules"];
    let told = format!("{}: {}", status["reason"], status["message"]);
    Ok(texts.iter().fold(told, |told, text| told.replace(text, "<rule>")))
}

/// A release beside another owner's definition, and other releases after it.
fn brought(planes: &Planes) -> Result<()> {
    let hub = &planes.hub.server;
    hub.apply_text(&tools::kinds(MODULE, &["cluster/v1/0000_00"])?)?;
    let theirs = || -> Result<[Value; 2]> {
        let metadata = hub.field(&format!("crd {}", KINDS[1]), "/metadata")?;
        Ok(["uid", "generation"].map(|field| metadata[field].clone()))
    };
    let before = theirs()?;
    let release = Installed { planes, namespace: "kinds-first" };
    release.helm("install", &[VALUES.to_owned()])?;
    ensure!(theirs()? == before, "somebody else's definition was written");
    let brought = planes.helm.args(["get", "manifest", RELEASE, "-n", release.namespace]).run()?.success()?;
    let is_brought = |text: &str, kind: &str| text.contains(&format!("\n  name: {kind}\n"));
    ensure!(!is_brought(&brought, KINDS[1]) && is_brought(&brought, KINDS[7]), "{brought}");
    hub.wait_for("crd", "Established", SOON)?;
    let kept = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "kept", "namespace": release.namespace}, "spec": {}});
    // Discovery lists a kind a moment after it is established.
    wait::until("the kind to be listed", SOON, || planes.hub.apply(std::slice::from_ref(&kept)))?;
    let uid = || hub.text(&format!("placement kept -n {}", release.namespace), "/metadata/uid");
    let placement = uid()?;

    // A release updates its own definitions; without the value, or the part, they stay.
    let placements = KINDS[7];
    hub.annotate(&format!("crd {placements} helm.sh/resource-policy-"))?;
    release.helm("upgrade", &["--reuse-values".to_owned(), "--set=replicas=3".to_owned()])?;
    let policy = hub.text(&format!("crd {placements}"), "/metadata/annotations/helm.sh~1resource-policy")?;
    ensure!(policy == "keep", "it is not brought up to date");
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
    hub.delete(&format!("crd {}", KINDS.join(" ")))
}

/// Definitions that another owner has taken over since, with and without helm's annotations.
fn taken_over(release: &Installed<'_>, uid: &dyn Fn() -> Result<String>) -> Result<()> {
    let (hub, placement, kind) = (&release.planes.hub.server, uid()?, KINDS[7]);
    let upgrade = |more: &str| release.helm("upgrade", &["--reuse-values".to_owned(), format!("--set={more}")]);
    let names = "meta.helm.sh/release-name- meta.helm.sh/release-namespace-";
    // Without the annotations, the release keeps its definition.
    hub.annotate(&format!("crd {kind} helm.sh/resource-policy- {names}"))?;
    let told = format!("{:#}", upgrade("controllers.crds=false").err().context("it would have been deleted")?);
    ensure!(told.contains(kind) && told.contains("has lost its annotation helm.sh/resource-policy"), "{told}");
    upgrade("replicas=2")?;
    ensure!(uid()? == placement, "the definition was deleted");
    // Another manager's changes to the definition stay.
    let categories = json!({"spec": {"names": {"categories": ["theirs"]}}});
    hub.patch(&format!("crd {kind} --field-manager=theirs"), &categories)?;
    hub.annotate(&format!("crd {kind} helm.sh/resource-policy-"))?;
    let told = format!("{:#}", upgrade("replicas=3").err().context("somebody else's would have been deleted")?);
    ensure!(told.contains(&format!("kubectl annotate crd {kind} helm.sh/resource-policy=keep")), "{told}");
    hub.annotate(&format!("crd {kind} helm.sh/resource-policy=keep"))?;
    upgrade("replicas=3")?;
    let categories = hub.text(&format!("crd {kind}"), "/spec/names/categories")?;
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
        Ok(Self { planes, _turn: turn })
    }

    /// There are none of the kinds: a release is about to install them.
    pub(crate) fn none(planes: &'p Planes) -> Self {
        Self { planes, _turn: TURN.lock() }
    }

    /// Waits until they can be used.
    pub(crate) fn wait(&self) -> Result<()> {
        let hub = &self.planes.hub.server;
        hub.present(&format!("crd {}", KINDS.join(" ")))?;
        hub.wait_for("crd", "Established", SOON)
    }

    pub(crate) fn delete(self) -> Result<()> {
        self.planes.hub.server.delete(&format!("crd {}", KINDS.join(" ")))
    }
}
