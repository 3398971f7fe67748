//! The far end: an agent, and a destination that sends and takes as many bytes as a command says.

use std::io::{BufRead as _, Read, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use tunnel_agent::Agent;

/// A command to the destination: one byte, then a number in eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Send that many bytes.
    Send = b's' as isize,
    /// Take that many bytes, then send one.
    Take = b't' as isize,
}

/// Port of the destination, which no other program uses there.
pub(crate) const PORT: u16 = 7000;
/// The process prints these when it may be configured, and when everything is running.
pub(crate) const READY: &str = "ready";

// === impl Command ===

impl Command {
    pub(crate) fn with(self, number: u64) -> [u8; 9] {
        let mut bytes = [self as u8; 9];
        bytes[1..].copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

/// Starts the destination; it serves until the process ends.
pub(crate) fn destination(address: SocketAddr) -> Result<SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(|| serve(stream)); // its errors are the caller's going
        }
    });
    Ok(address)
}

/// The program in the far namespace: prints that it is there, reads the agent's flags (one a line,
/// an empty one at the end), prints that everything runs, and ends with its standard input.
pub(crate) fn main(address: IpAddr) -> ExitCode {
    let run = || -> Result<()> {
        let mut lines = std::io::stdin().lock().lines();
        say(READY)?;
        let mut flags = Vec::new();
        for line in lines.by_ref() {
            match line? {
                end if end.is_empty() => break,
                flag => flags.push(flag),
            }
        }
        crate::network::configure(address)?;
        destination(SocketAddr::from((address, PORT)))?;
        let _agent = Agent::start(flags)?;
        say(READY)?;
        lines.for_each(drop);
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(say(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut command = [0; 9];
    while stream.read_exact(&mut command).is_ok() {
        let number = u64::from_be_bytes(command[1..].try_into()?);
        if command == Command::Send.with(number) {
            std::io::copy(&mut std::io::repeat(7).take(number), &mut stream)?;
        } else if command == Command::Take.with(number) {
            std::io::copy(&mut Read::take(&mut stream, number), &mut std::io::sink())?;
            stream.write_all(&[1])?;
        } else {
            bail!("no command");
        }
    }
    Ok(())
}
