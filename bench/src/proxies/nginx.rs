//! nginx as a plain reverse proxy that puts the member's token on every request.

use anyhow::Result;
use hub_tests::process::Process;

use super::Plan;
use crate::nginx::Nginx;
use crate::upstream::TOKEN;

const CONFIGURATION: &str = include_str!("nginx.conf");
/// Without upgrades, `Connection` is kept free for reuse.
const UPGRADES: &str = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";
const NO_UPGRADES: &str = r#"proxy_set_header Connection "";"#;

pub fn start(plan: &Plan<'_>) -> Result<Process> {
    let authority = plan.destination.authority.write_to(&plan.directory, &format!("{}-member-ca", plan.name))?;
    let configuration = CONFIGURATION
        .replace("@WORKERS@", &plan.threads.to_string())
        .replace("@ADDRESS@", &plan.address.to_string())
        .replace("@CERTIFICATE@", &plan.serving.certificate.display().to_string())
        .replace("@KEY@", &plan.serving.key.display().to_string())
        .replace("@MEMBER@", &plan.destination.address.to_string())
        .replace("@AUTHORITY@", &authority.display().to_string())
        .replace("@TOKEN@", TOKEN)
        .replace("@UPGRADES@", if plan.destination.upgrades { UPGRADES } else { NO_UPGRADES });
    Nginx::find()?.start(&plan.name, &configuration, &plan.directory)
}
