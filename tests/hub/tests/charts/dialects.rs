//! Karmada's APIService where the hub has one already: never taken by accident. Clusters at the
//! gateways' own Service: refused in each spelling.

use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, on_hub};

const API_SERVICE: &str = "v1alpha1.cluster.karmada.io";
const SERVICE: &str = "door-cluster-gateway";
const UPSTREAM: &str = "dialects.karmada.upstream=https://karmada.example,dialects.karmada.upstreamSecret=mine";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        on_hub(fixture, "dialects::somebody else's APIService is taken only when asked", taken),
        on_hub(fixture, "dialects::each spelling of the gateways' Service is known as theirs", own_endpoints),
    ]
}

fn own_endpoints(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE}, "spec": {"ports": [{"port": 9443}]}});
    planes.hub.server.apply(&[service])?;
    let line = format!("service {SERVICE} -n {NAMESPACE}");
    let address = planes.hub.server.read(&line)?["spec"]["clusterIP"].as_str().map(str::to_owned);
    let address = address.context("no address of the Service")?;
    let values = "--set=dialects.karmada.enabled=true,dialects.ocmUserServer.enabled=true,controllers.enabled=true,\
                  controllers.watchNamespaces={default},controllers.sources.kubeconfig=true";
    let objects = planes.helm.template("door", NAMESPACE, &["--dry-run=server".to_owned(), values.to_owned()]);
    planes.hub.server.delete(&line)?;
    let objects = objects?;
    for deployment in [SERVICE, "door-cluster-gateway-controllers"] {
        let own = own_of(&objects, deployment)?;
        let short = format!("{SERVICE}.{NAMESPACE}");
        for host in [SERVICE, &short, &format!("{short}.svc"), &format!("{short}.svc.cluster.local"), &address] {
            for port in [9443, 9092] {
                let url = format!("https://{host}:{port}");
                ensure!(own.contains(&url), "{deployment} takes a cluster at {url}: {own:?}");
            }
        }
        ensure!(own.len() == 10, "{deployment}: {own:?}");
    }
    Ok(())
}

/// What the pods of a Deployment are told of their own addresses.
fn own_of(objects: &[Value], deployment: &str) -> Result<Vec<String>> {
    let its = |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == deployment;
    let found = objects.iter().find(its).with_context(|| format!("no Deployment {deployment}"))?;
    let args = &found["spec"]["template"]["spec"]["containers"][0]["args"];
    let mut args = args.as_array().into_iter().flatten().filter_map(Value::as_str);
    let urls = args.find_map(|arg| arg.strip_prefix("--own-endpoints=")).context("no --own-endpoints")?;
    Ok(urls.split(',').map(str::to_owned).collect())
}

fn taken(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group();
    let render_all = |values: String| {
        planes.helm.template("door", NAMESPACE, &["--dry-run=server".to_owned(), format!("--set={values}")])
    };
    let render = |values: &str| render_all(format!("dialects.karmada.enabled=true{values}"));
    let refused = |values: &str, says: &str| {
        let told = format!("{:#}", render(values).err().with_context(|| format!("{values} is rendered"))?);
        ensure!(told.contains(says), "{values}: {told}");
        anyhow::Ok(())
    };
    render("").context("without anybody's")?;
    // Without a Service: one that does not answer would block all deletions of namespaces.
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": API_SERVICE},
        "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 1, "versionPriority": 1},
    });
    planes.hub.server.create(&[object])?;
    let tried = refused("", "that is not this release's")
        .and_then(|()| refused(&format!(",{UPSTREAM}"), "that is not this release's"))
        .and_then(|()| render(",dialects.karmada.takeOver=true").map(drop))
        .and_then(|()| render(&format!(",dialects.karmada.takeOver=true,{UPSTREAM}")))
        .and_then(|objects| {
            let its = |object: &&Value| object["metadata"]["name"] == API_SERVICE;
            let found = objects.iter().find(its).context("no APIService")?;
            ensure!(found["spec"]["service"]["name"] == "door-cluster-gateway", "{found}");
            Ok(())
        });
    planes.hub.server.delete(&format!("apiservice {API_SERVICE}"))?;
    tried?;
    refused(&format!(",{UPSTREAM},dialects.karmada.register=true"), "Karmada itself gets the writes")?;
    refused(",dialects.karmada.upstream=https://karmada.example", "dialects.karmada.upstreamSecret is required")?;
    refused(",dialects.karmada.upstream=http://karmada.example", "upstream")?;
    refused(",dialects.karmada.upstreamSecret=mine", "has no effect without dialects.karmada.upstream")?;
    let told = format!("{:#}", render_all(UPSTREAM.to_owned()).err().context("rendered without its dialect")?);
    ensure!(told.contains("has no effect without dialects.karmada.enabled"), "{told}");
    Ok(())
}
