//! The process: allocator, arguments, logs, then the library.

use std::process::ExitCode;

use net::process;
use tunnel_agent::Agent;
use tunnel_agent::args::{self, Config};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    process::main("tunnel-agent", run)
}

fn run() -> anyhow::Result<()> {
    let config = Config::new(&args::parse(), |name| std::env::var(name).ok())?;
    let _level = telemetry::logs::start(&config.log_level, config.log_format)?;
    Agent::run(config)
}
