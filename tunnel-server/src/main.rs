//! The process: allocator, arguments, logs, then the library.

use std::process::ExitCode;

use tunnel_server::Server;
use tunnel_server::args::{self, Config};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(
                clippy::print_stderr,
                reason = "logs may not be set up, and the operator must see why nothing starts"
            )]
            {
                eprintln!("tunnel-server: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let config = Config::new(args::parse(), hub::client::is_in_pod())?;
    telemetry::logs::start(&config.log_level, config.log_format)?;
    tracing::debug!(limit = ?net::descriptors::raise(), "open files");
    Server::run(&config)
}
