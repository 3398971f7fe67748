//! `HAProxy` as a plain reverse proxy that puts the member's token on every request.

use std::fs;

use anyhow::Result;
use hub_tests::process::Process;

use super::Plan;
use crate::tool;
use crate::upstream::TOKEN;

const CONFIGURATION: &str = include_str!("haproxy.cfg");

pub fn start(plan: &Plan<'_>) -> Result<Process> {
    let program = tool::find("haproxy", "haproxy")?;
    let authority = plan.destination.authority.write_to(&plan.directory, &format!("{}-member-ca", plan.name))?;
    let configuration = CONFIGURATION
        .replace("@THREADS@", &plan.threads.to_string())
        .replace("@ADDRESS@", &plan.address.to_string())
        .replace("@CERTIFICATE@", &plan.serving.certificate.display().to_string())
        .replace("@MEMBER@", &plan.destination.address.to_string())
        .replace("@AUTHORITY@", &authority.display().to_string())
        .replace("@TOKEN@", TOKEN)
        .replace("@ALPN@", if plan.destination.upgrades { "http/1.1" } else { "h2,http/1.1" });
    let path = plan.directory.join(format!("{}.cfg", plan.name));
    fs::write(&path, configuration)?;
    Process::start(&plan.name, &program, ["-db".as_ref(), "-f".as_ref(), path.as_os_str()], &plan.directory)
}
