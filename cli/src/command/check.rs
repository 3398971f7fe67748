//! `check`: checks hub, gateway, tunnel and members, and gives a remedy for what is wrong.

mod clusters;
mod gateway;
mod rights;
mod tunnel;

use std::process::ExitCode;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::Api;
use serde_json::json;

use self::gateway::Gateway;
use crate::expiry::now;
use crate::findings::{self, Finding, Mark};
use crate::look::version;
use crate::output::{self, Format};
use crate::session::Session;
use crate::trouble::{Exit, INSTALL, Result, Trouble};
use crate::{namespace, selection, span};

/// A heading, and the findings below it.
type Section = (&'static str, Vec<Finding>);

/// Check hub, gateway, tunnel and clusters.
///
/// Checks the hub (APIService, certificates, rights), the replicas and rights of the gateway and
/// the tunnel-servers, the controllers' replicas, and each cluster. A check that you have no rights
/// for is a warning.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters check
  kubectl clusters check berlin
  kubectl clusters check -o json")]
pub struct Check {
    /// The only cluster to check [default: all]
    name: Option<String>,
    /// json or yaml
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

// === impl Check ===

impl Check {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        if matches!(self.output, Some(Format::Wide | Format::Name)) {
            return Err(Trouble::usage("check does not support this output", "omit -o, or give -o json or -o yaml"));
        }
        let name = self.name.as_deref().map(selection::name).transpose()?;
        let mut sections: Vec<Section> = Vec::new();
        let (told, took) = session.within(version(session.hub())).await?;
        let mut hub = vec![Finding::good(format!("it answers: Kubernetes {told}, {}", span::took(took)))];
        let gateway = hub_findings(session, &mut hub).await;
        let clusters_namespace = namespace::of_clusters(session).await.unwrap_or_default();
        hub.extend(rights::own(session, &clusters_namespace).await);
        sections.push(("hub", hub));
        if let Some(gateway) = &gateway {
            sections.push(("gateway", gateway.look(session, &clusters_namespace).await));
            let found = tunnel::look(session, gateway).await;
            let more = [("tunnel", found), ("controllers", gateway.controllers())];
            sections.extend(more.into_iter().filter(|(_, found)| !found.is_empty()));
        }
        sections.push(("clusters", clusters::look(session, name.as_ref()).await?));
        self.show(&sections)
    }

    fn show(&self, sections: &[Section]) -> Result<ExitCode> {
        let count = |mark| sections.iter().flat_map(|(_, found)| found).filter(|finding| finding.mark == mark).count();
        let (bad, warnings) = (count(Mark::Bad), count(Mark::Warning));
        if let Some(format) = self.output {
            let sections: Vec<_> =
                sections.iter().map(|(name, found)| json!({"name": name, "findings": found})).collect();
            output::print_document(&json!({"sections": sections}), format == Format::Yaml)?;
        } else {
            output::print(&text(sections, output::is_coloured()))?;
            output::print(&format!("{bad} failed, {}\n", output::count(warnings, "warning")))?;
        }
        Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::from(Exit::Failed as u8) })
    }
}

fn text(sections: &[Section], coloured: bool) -> String {
    let mut text = String::new();
    for (name, found) in sections {
        text.extend([*name, "\n"]);
        for finding in found {
            text.extend(["  ", finding.mark.sign(coloured), " ", &crate::text_table::tame(&finding.what), "\n"]);
            if !finding.remedy.is_empty() {
                text.extend(["    remedy: ", &crate::text_table::tame(&finding.remedy), "\n"]);
            }
        }
    }
    text
}

/// Adds findings about the gateway's registration, and about the CA by which it authenticates its
/// callers. Returns the gateway, if there is one.
async fn hub_findings(session: &Session, found: &mut Vec<Finding>) -> Option<Gateway> {
    let client = session.hub();
    let service = session.within(Api::<APIService>::all(client.clone()).get_opt(namespace::API_SERVICE)).await;
    let gateway = match service {
        Err(trouble) => {
            found.push(unseen("the APIService", &trouble));
            None
        }
        Ok(None) => {
            let what = format!("there is no APIService {}", namespace::API_SERVICE);
            found.push(Finding::bad(what, INSTALL));
            None
        }
        Ok(Some(service)) => {
            found.extend(findings::api_service(&service, now()));
            let place = service
                .spec
                .and_then(|spec| spec.service)
                .and_then(|service| Some((service.namespace?, service.name?)));
            match place {
                Some((namespace, name)) => Some(Gateway::behind(session, namespace, &name).await),
                None => None,
            }
        }
    };
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    match session.within(maps.get("extension-apiserver-authentication")).await {
        Ok(map) => found.extend(findings::front_proxy(&map.data.unwrap_or_default(), now())),
        Err(trouble) => found.push(unseen("the hub's front-proxy CA", &trouble)),
    }
    gateway
}

/// A warning, not a failure: what the person may not see may be as it should be.
fn unseen(what: &str, trouble: &Trouble) -> Finding {
    let remedy = match trouble.remedy.as_str() {
        "" if trouble.is_forbidden() => "ask the hub's administrator for that verb on that resource",
        remedy => remedy,
    };
    Finding::warning(format!("cannot check {what}: {}", trouble.what), remedy)
}
