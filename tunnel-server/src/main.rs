//! The process: allocator, arguments, logs, then the library.

use std::process::ExitCode;

use net::process;
use tunnel_server::Server;
use tunnel_server::args::{self, Config};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    process::main("tunnel-server", run)
}

fn run() -> anyhow::Result<()> {
    let config = Config::new(args::parse(), hub::client::is_in_pod())?;
    telemetry::logs::start(&config.log_level, config.log_format)?;
    Server::run(&config)
}
