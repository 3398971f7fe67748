//! The process: allocator, arguments, logs, then the library.

use std::process::ExitCode;

use controllers::Controllers;
use controllers::args::{self, Config};
use net::process;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    process::main("cluster-gateway-controllers", run)
}

fn run() -> anyhow::Result<()> {
    let args = args::parse();
    if let Some(command) = &args.command {
        return command.run();
    }
    let config = Config::new(&args)?;
    let _level = telemetry::logs::start(&config.log_level, config.log_format)?;
    Controllers::run(config)
}
