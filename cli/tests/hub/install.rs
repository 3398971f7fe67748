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
    let line = format!("install --print --chart {} {set} --helm {}", chart.display(), helm.display());
    let manifests = ended(&clusters(testbed), &line, 0)?.stdout;
    ensure!(
        manifests.contains("registry.example/cluster-gateway") && manifests.contains("kind: APIService"),
        "{manifests}"
    );
    let hub = testbed.hub.server.kubectl();
    hub.args(["apply", "--dry-run=server", "-f", "-"]).stdin(manifests).run()?.success()?;
    Ok(())
}

fn by_helm(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let absent = ended(&program, "install --helm no-such-helm", 2)?.stderr;
    ensure!(absent.contains("no-such-helm") && absent.contains("--print"), "{absent}");
    let lost = program.args(["install", "--chart", "charts/cluster-gateway"]).env("PATH", "/nowhere").run()?;
    ensure!(lost.status == 2, "{lost:?}");
    let mut screens = Screens::default();
    screens.compare("install --chart charts/cluster-gateway    # no helm here", &lost)?;
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
