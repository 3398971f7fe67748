//! This executable as the programs under test, chosen by the name under which it is started: a
//! plain `cargo test` needs no second build of them.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use controllers::Controllers;
use gateway::Gateway;
use net::process;
use tunnel_agent::Agent;
use tunnel_server::Server;

/// The program that operators use.
pub const CLI: &str = "kubectl-clusters";
/// Programs that have an image here.
pub const IMAGES: [&str; 4] = ["cluster-gateway", "tunnel-server", "tunnel-agent", "cluster-gateway-controllers"];

/// Runs the program of the name under which this process was started. `None`: no program has this
/// name.
pub fn requested() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    match Path::new(&name).file_name()?.to_str()? {
        CLI => Some(kubectl_clusters::run()),
        "cluster-gateway" | "apiserver" | "patch" => Some(process::main("cluster-gateway", gateway)),
        "tunnel-server" => Some(process::main("tunnel-server", server)),
        "tunnel-agent" => Some(process::main("tunnel-agent", agent)),
        "cluster-gateway-controllers" => Some(process::main("cluster-gateway-controllers", controllers)),
        _ => None,
    }
}

/// This and the next three functions do what the `main` of each program does.
fn gateway() -> Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(arguments) = gateway::patch::requested(arguments) {
        return gateway::patch::run(arguments);
    }
    let config = gateway::args::Config::try_from(gateway::args::parse())?;
    let logs = telemetry::logs::start(&config.log_level, config.log_format)?;
    Gateway::run(&config, logs)
}

fn server() -> Result<()> {
    let config = tunnel_server::args::Config::new(tunnel_server::args::parse(), hub::client::is_in_pod())?;
    telemetry::logs::start(&config.log_level, config.log_format)?;
    Server::run(&config)
}

fn agent() -> Result<()> {
    let config = tunnel_agent::args::Config::new(&tunnel_agent::args::parse(), |name| std::env::var(name).ok())?;
    let _level = telemetry::logs::start(&config.log_level, config.log_format)?;
    Agent::run(config)
}

fn controllers() -> Result<()> {
    let args = controllers::args::parse();
    if let Some(command) = &args.command {
        return command.run();
    }
    let config = controllers::args::Config::new(&args)?;
    let _level = telemetry::logs::start(&config.log_level, config.log_format)?;
    Controllers::run(config)
}
