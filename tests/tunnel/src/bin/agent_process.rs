//! The tunnel-agent as a process that a test may kill: the program's own binary is built for its
//! own package's tests only.

use tunnel_agent::Agent;
use tunnel_agent::args::{self, Config};

fn main() -> anyhow::Result<()> {
    Agent::run(Config::new(&args::parse(), |name| std::env::var(name).ok())?)
}
