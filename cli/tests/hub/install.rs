//! `install`: with helm, and for people without it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::screens::Screens;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use hub_tests::wait;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, clusters, ended, script, started, test};

const LIMIT: Duration = Duration::from_secs(30);

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "install::what it prints is what a hub takes", printed),
        test(fixture, "install::Ctrl-C lets helm end, and a second run goes on", interrupted),
        test(fixture, "install::nobody waits for an image that is not published", imageless),
        test(fixture, "install::helm is run for the hub of the context, and its words are told", by_helm),
    ]
}

fn printed(testbed: &Testbed) -> Result<()> {
    let (helm, chart) = (provide(Tool::Helm)?, Chart::Gateway.directory());
    let set = format!("--set image.repository=registry.example/cluster-gateway -n {SECRET_NAMESPACE}");
    let line = format!("install --print {set} --helm {}", helm.display());
    let manifests = ended(&clusters(testbed), &line, 0)?.stdout;
    let named = ended(&clusters(testbed), &format!("{line} --chart {}", chart.display()), 0)?.stdout;
    ensure!(shape(&manifests) == shape(&named), "the program's chart is another than the repository's");
    let values = testbed.launcher().file("cli-values.yaml");
    std::fs::write(&values, "replicas: 7\nservice: {name: of-a-file}\n")?;
    let told = ended(&clusters(testbed), &format!("{line} -f {}", values.display()), 0)?.stdout;
    ensure!(told.contains("replicas: 7") && told.contains("name: of-a-file"), "{told}");
    // Values on the command line take precedence, as in helm.
    let both = format!("{line} -f {} --set replicas=3", values.display());
    let told = ended(&clusters(testbed), &both, 0)?.stdout;
    ensure!(told.contains("replicas: 3") && told.contains("name: of-a-file"), "{told}");
    let lost = ended(&clusters(testbed), &format!("{line} -f /no/values.yaml"), 1)?.stderr;
    ensure!(lost.contains("/no/values.yaml") && lost.contains("remedy: "), "{lost}");
    // A chart of that name in the current directory is not used.
    let strange = testbed.launcher().directory.join("cli-strange");
    std::fs::create_dir_all(strange.join("charts/cluster-gateway/templates"))?;
    let told = "apiVersion: v2\nname: cluster-gateway\nversion: 6.6.6\n";
    std::fs::write(strange.join("charts/cluster-gateway/Chart.yaml"), told)?;
    let program = clusters(testbed);
    let mut there = std::process::Command::new(&program.binary);
    there.args(line.split(' ')).env("KUBECONFIG", &program.kubeconfig).current_dir(&strange);
    let there = String::from_utf8(there.output()?.stdout)?;
    ensure!(
        manifests
            .starts_with(&format!("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {SECRET_NAMESPACE}\n"))
    );
    ensure!(shape(&there) == shape(&manifests), "another chart is installed: {there}");
    ensure!(
        manifests.contains("registry.example/cluster-gateway") && manifests.contains("kind: APIService"),
        "{manifests}"
    );
    let hub = testbed.hub.server.kubectl();
    hub.args(["apply", "--dry-run=server", "-f", "-"]).stdin(manifests).run()?.success()?;
    Ok(())
}

/// The lines that are the same in each rendering, which creates new certificates each time.
fn shape(manifests: &str) -> Vec<&str> {
    let lasting =
        |line: &&str| ["kind:", "apiVersion:", "name:", "image:"].iter().any(|key| line.trim().starts_with(key));
    manifests.lines().filter(lasting).collect()
}

/// A chart that is never ready: no node runs its pod.
fn interrupted(testbed: &Testbed) -> Result<()> {
    let (program, helm) = (clusters(testbed), provide(Tool::Helm)?);
    let chart = testbed.launcher().directory.join("cli-slow-chart");
    std::fs::create_dir_all(chart.join("templates"))?;
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: slow\nversion: 0.1.0\n")?;
    std::fs::write(
        chart.join("templates/pod.yaml"),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: \"slow-{{ .Values.number }}\"}\n\
         spec: {automountServiceAccountToken: false, containers: [{name: a, image: a}]}\n",
    )?;
    let line = |more: &str| {
        format!("install --release slow -n slow --chart {} --helm {} {more}", chart.display(), helm.display())
    };
    let status = || -> Result<String> {
        let releases = testbed.hub.server.read("secrets -n slow -l owner=helm,name=slow")?;
        let releases = releases["items"].as_array().into_iter().flatten();
        let status = releases.filter_map(|release| release["metadata"]["labels"]["status"].as_str());
        Ok(status.collect::<Vec<_>>().join(" "))
    };
    let mut running = started(&program, &line("--set number=1 --wait 5m"));
    wait::until_true("helm's release", LIMIT, || Ok(status()?.contains("pending-install")))?;
    running.signal("INT");
    running.text_with("error: helm: it was interrupted");
    running.text_with("interrupted: what was created stays");
    ensure!(running.ended().code() == Some(130), "the code of shells for Ctrl-C");
    ensure!(status()? == "failed", "helm was killed half-way: {}", status()?);
    // The second run has the first run's value, and finds no lock.
    let again = ended(&program, &line("--wait 2s"), 1)?.stderr;
    ensure!(again.contains("remedy: see the pods and events") && !again.contains("another operation"), "{again}");
    testbed.hub.server.present("pod slow-1 -n slow")
}

fn by_helm(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let absent = ended(&program, "install --helm no-such-helm", 2)?.stderr;
    ensure!(absent.contains("no-such-helm") && absent.contains("--print"), "{absent}");
    let lost = program.args(["install"]).env("PATH", "/nowhere").run()?;
    ensure!(lost.status == 2, "{lost:?}");
    let mut screens = Screens::default();
    screens.compare("install    # no helm here", &lost)?;
    let helm = provide(Tool::Helm)?;
    let wrong = ended(&program, &format!("install --print --chart /no/chart --helm {}", helm.display()), 1)?.stderr;
    ensure!(wrong.contains("/no/chart") && wrong.contains("remedy: check that --chart"), "{wrong}");
    let told = telling(testbed, "cli-helm", "echo \"$@\"")?;
    let (kubeconfig, context) =
        (program.kubeconfig.display(), testbed.hub.server.kubectl().args(["config", "current-context"]).run()?.stdout);
    let context = context.trim();
    let line = format!(
        "install --chart x --context {context} --kubeconfig {kubeconfig} -n hub --set a=b -f values.yaml --wait 2m --helm {}",
        told.display()
    );
    let words = ended(&program, &line, 0)?;
    let expected = |kept: &str| {
        format!(
            "upgrade --install cluster-gateway x --namespace=hub --create-namespace --wait --timeout=120s {kept} --set=a=b \
             --values=values.yaml --kubeconfig={kubeconfig} --kube-context={context}\n"
        )
    };
    ensure!(words.stdout == expected("--reset-then-reuse-values"), "{words:?}");
    ensure!(
        words.stderr.contains("reaches the gateway") && words.stderr.contains("kubectl clusters check"),
        "{words:?}"
    );
    let words = ended(&program, &format!("{line} --reset-values"), 0)?;
    ensure!(words.stdout == expected("--reset-values"), "{words:?}");
    let nowhere = ended(&program, &line.replace(context, "no-such-context"), 2)?;
    ensure!(nowhere.stdout.is_empty() && nowhere.stderr.contains("no-such-context"), "{nowhere:?}");
    screens.finish()
}

/// A script that takes helm's place, and does what `words` say.
fn telling(testbed: &Testbed, name: &str, words: &str) -> Result<PathBuf> {
    let told = testbed.launcher().file(name);
    script(&told, &format!("#!/bin/sh\n{words}\n"))?;
    Ok(told)
}

/// No image is published, so an install without one fails at once instead of waiting.
fn imageless(testbed: &Testbed) -> Result<()> {
    let (program, helm, chart) = (clusters(testbed), provide(Tool::Helm)?, Chart::Gateway.directory());
    let none = format!("install --release cli-imageless --helm {}", helm.display());
    for line in [none.clone(), format!("{none} --chart {}", chart.display()), format!("{none} --set replicas=3")] {
        let told = ended(&program, &line, 2)?;
        ensure!(told.stdout.is_empty() && told.stderr.contains("--set image.repository=REGISTRY/"), "{told:?}");
    }
    for (on, key) in [("tunnel.server", "tunnel.server.image"), ("controllers", "controllers.image")] {
        let line = format!("{none} --set image.repository=r/x,{on}.enabled=true");
        let told = ended(&program, &line, 2)?;
        let remedy = format!("--set {key}.repository=REGISTRY/");
        ensure!(told.stdout.is_empty() && told.stderr.contains(&remedy), "{told:?}");
    }
    let printed = ended(&program, &format!("{none} --print"), 0)?.stderr;
    ensure!(printed.contains("an image that is not published: --set image.repository="), "{printed}");
    // An earlier run set the image; and helm prints long notes.
    let script = "case $1 in get) echo '{\"image\": {\"repository\": \"r/x\"}}';; \
                  *) echo \"$@\"; printf 'STATUS: deployed\\nNOTES:\\nread me\\n';; esac";
    let helm = telling(testbed, "cli-helm-release", script)?;
    let line = format!("install --helm {} --wait 90s", helm.display());
    let again = ended(&program, &line, 0)?;
    ensure!(again.stdout.ends_with("STATUS: deployed\n"), "{again:?}");
    let first = again.stderr.lines().next().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    for part in [
        &*format!("cluster-gateway {version}"),
        "namespace vela-system",
        "context it;",
        "waiting up to 90s for its pods",
    ] {
        ensure!(first.contains(part), "{part}: {first}");
    }
    ensure!(again.stderr.contains("`helm get notes cluster-gateway -n vela-system`"), "{again:?}");
    let forgotten = ended(&program, &format!("{line} --reset-values"), 2)?.stderr;
    ensure!(forgotten.contains("image.repository"), "{forgotten}");
    Ok(())
}
