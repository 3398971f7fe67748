//! The tunnel-server as a process that a test may kill: the program's own binary is built for its
//! own package's tests only.

use tunnel_server::Server;
use tunnel_server::args::{self, Config};

fn main() -> anyhow::Result<()> {
    Server::run(&Config::new(args::parse(), false)?)
}
