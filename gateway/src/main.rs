//! The process: allocator, arguments, logs, then the library.

use std::process::ExitCode;

use gateway::Gateway;
use gateway::args::{self, Config};
use gateway::patch;
use net::process;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    process::main("cluster-gateway", run)
}

fn run() -> anyhow::Result<()> {
    if let Some(arguments) = patch::requested(std::env::args_os()) {
        return patch::run(arguments);
    }
    let config = Config::try_from(args::parse())?;
    let logs = telemetry::logs::start(&config.log_level, config.log_format)?;
    Gateway::run(&config, logs)
}
