//! This executable as one of the programs under test, so that a plain `cargo test` needs no second
//! build of them: started again with [`WORD`], the program's name and its flags.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};
use gateway::Gateway;
use net::process;
use tunnel_agent::Agent;
use tunnel_server::Server;

/// The first argument of a process that is to be a program.
pub const WORD: &str = "program";

/// Runs the program that the process's arguments ask for. `None`: they ask for none.
pub fn requested(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    arguments.next()?;
    if arguments.next()? != WORD {
        return None;
    }
    let arguments: Vec<OsString> = arguments.collect();
    let name = arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Some(process::main(&name, || run(&name, arguments)))
}

/// Runs the program, as its `main` does.
fn run(name: &str, arguments: Vec<OsString>) -> Result<()> {
    match name {
        "cluster-gateway" => {
            let config = gateway::args::Config::try_from(gateway::args::parse_from(arguments)?)?;
            let logs = telemetry::logs::start(&config.log_level, config.log_format)?;
            Gateway::run(&config, logs)
        }
        "tunnel-server" => {
            let config = tunnel_server::args::Config::new(tunnel_server::args::parse_from(arguments)?, false)?;
            telemetry::logs::start(&config.log_level, config.log_format)?;
            Ok(Server::run(&config)?)
        }
        "tunnel-agent" => {
            let arguments = tunnel_agent::args::parse_from(arguments)?;
            let config = tunnel_agent::args::Config::new(&arguments, |_| None)?;
            telemetry::logs::start(&config.log_level, config.log_format)?;
            Ok(Agent::run(config)?)
        }
        other => bail!("{other:?} is none of the programs"),
    }
}
