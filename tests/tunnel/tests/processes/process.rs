//! A child process, and the end of its streams when it goes.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use kit::wait::{WAIT, becomes, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;
use tunnel_tests::Tunnel;

/// In one of a few runs: a busy machine is not busy each time.
pub const A_SECOND: Duration = Duration::from_secs(1);

/// A process that is killed when dropped.
pub struct Process(Child);

// === impl Process ===

impl Process {
    /// `arguments` with the program's name first.
    pub fn agent(arguments: &[String]) -> Self {
        Self::start(env!("CARGO_BIN_EXE_agent-process"), arguments)
    }

    /// As [`Process::agent`].
    pub fn server(arguments: &[String]) -> Self {
        Self::start(env!("CARGO_BIN_EXE_server-process"), arguments)
    }

    fn start(program: &str, arguments: &[String]) -> Self {
        let mut command = Command::new(program);
        command.env_clear().args(&arguments[1..]).stdin(Stdio::null());
        Self(command.spawn().expect("the program starts"))
    }

    /// Sends a signal, by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status();
        assert!(status.expect("there is a kill").success());
    }

    /// Waits until it has ended by itself, and says how long that took.
    pub async fn ended(mut self, limit: Duration) -> (ExitStatus, Duration) {
        let start = Instant::now();
        let mut status = None;
        becomes(limit, "the end of the process", async || {
            status = self.0.try_wait().expect("a child");
            status.is_some()
        })
        .await;
        (status.expect("it has ended"), start.elapsed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads on until the end, which has to be a reset.
pub async fn assert_reset(tunnel: &mut Tunnel) {
    assert_eq!(tunnel.end("a stream").await, Some(io::ErrorKind::ConnectionReset));
}

/// Reads on until the end, which must not look like a proper one. The kernel closes the connections
/// of a killed process: with a FIN, where nothing was unread; TLS distinguishes that from a proper
/// end.
pub async fn assert_broken(tunnel: &mut Tunnel) {
    let end = tunnel.end("a stream").await;
    assert!(matches!(end, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof)), "{end:?}");
}

/// One word there and back.
pub async fn assert_echoes(tunnel: &mut Tunnel) {
    tunnel.write_all(b"still here").await.expect("written");
    tunnel.flush().await.expect("written");
    let mut heard = [0; 10];
    within(WAIT, "an echo", tunnel.read_exact(&mut heard)).await.expect("echoed");
    assert_eq!(&heard, b"still here");
}
