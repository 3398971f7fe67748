//! `install`: by helm, and for people without it.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::helm::Chart;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{Tool, provide};
use libtest_mimic::Trial;

use crate::fixture::{Fixture, clusters, ended, test};
use crate::screens::Screens;

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "install::what it prints is what a hub takes", printed),
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
    // A chart of that name where somebody happens to be is nobody's choice.
    let strange = testbed.launcher().directory.join("cli-strange");
    std::fs::create_dir_all(strange.join("charts/cluster-gateway/templates"))?;
    let told = "apiVersion: v2\nname: cluster-gateway\nversion: 6.6.6\n";
    std::fs::write(strange.join("charts/cluster-gateway/Chart.yaml"), told)?;
    let program = clusters(testbed);
    let mut there = std::process::Command::new(&program.binary);
    there.args(line.split(' ')).env("KUBECONFIG", &program.kubeconfig).current_dir(&strange);
    let there = String::from_utf8(there.output()?.stdout)?;
    ensure!(shape(&there) == shape(&manifests), "another chart is installed: {there}");
    ensure!(
        manifests.contains("registry.example/cluster-gateway") && manifests.contains("kind: APIService"),
        "{manifests}"
    );
    let hub = testbed.hub.server.kubectl();
    hub.args(["apply", "--dry-run=server", "-f", "-"]).stdin(manifests).run()?.success()?;
    Ok(())
}

/// The lines that are the same in each rendering: certificates are made anew.
fn shape(manifests: &str) -> Vec<&str> {
    let lasting =
        |line: &&str| ["kind:", "apiVersion:", "name:", "image:"].iter().any(|key| line.trim().starts_with(key));
    manifests.lines().filter(lasting).collect()
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
    ensure!(wrong.contains("/no/chart") && wrong.contains("remedy: see that --chart"), "{wrong}");
    // A helm that tells its words.
    let told = testbed.launcher().file("cli-helm");
    std::fs::write(&told, "#!/bin/sh\necho \"$@\"\n")?;
    std::fs::set_permissions(&told, std::fs::Permissions::from_mode(0o755))?;
    let line = "install --chart x --context prod --kubeconfig k -n hub --set a=b -f values.yaml --wait 2m";
    let words = ended(&program, &format!("{line} --helm {}", told.display()), 0)?;
    let expected = "upgrade --install cluster-gateway x --namespace=hub --create-namespace --wait --timeout=120s --set=a=b \
                    --values=values.yaml --kubeconfig=k --kube-context=prod\n";
    ensure!(words.stdout == expected && words.stderr.contains("kubectl clusters check"), "{words:?}");
    screens.finish()
}
