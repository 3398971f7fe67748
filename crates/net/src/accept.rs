//! Accepts connections, and continues after single ones fail.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::dial;
use crate::follow::Complaints;
use crate::words;

/// Waits after an accept that failed for lack of a resource, usually file descriptors.
const AGAIN: Backoff = Backoff::doubling(Duration::from_millis(10), Duration::from_secs(1));

/// Passes each connection that `next` accepts to `take`, forever. `whom` is for the log: "clients".
///
/// An error concerns one connection, or means that the process lacks a resource. The loop ignores
/// the first kind, and waits after the second, longer each time.
pub async fn each<T, F: Future<Output = io::Result<T>>>(
    whom: &'static str,
    mut next: impl FnMut() -> F,
    mut take: impl FnMut(T),
) {
    let (mut failures, mut complaints) = (0_u32, Complaints::default());
    loop {
        match next().await {
            Ok(accepted) => {
                failures = 0;
                take(accepted);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if failures == 0 {
                    // Logged again after each success in between, because the lack may come and go.
                    complaints.clear();
                }
                if let Some(error) = complaints.new_cause(&words::io(&error)) {
                    tracing::error!(error, "cannot accept {whom}, trying again");
                }
                sleep(AGAIN.wait(failures)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// Accepts the next connection, and sets the options that all have. Returns it with its peer's
/// address. An IPv4 address is returned as such, even if a socket of both families has it inside an
/// IPv6 one (RFC 4291 §2.5.5.2).
pub async fn tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, address) = listener.accept().await?;
    dial::tune(&stream);
    Ok((stream, SocketAddr::new(address.ip().to_canonical(), address.port())))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_waits_when_something_is_missing_and_only_then() {
        let started = Instant::now();
        let tries = Cell::new(0);
        let next = || {
            tries.set(tries.get() + 1);
            let failure = match tries.get() {
                1 => Some(io::ErrorKind::ConnectionAborted.into()),
                2..=5 | 7 => Some(io::Error::other("too many open files")),
                _ => None,
            };
            let number = tries.get();
            async move {
                match failure {
                    Some(error) => Err(error),
                    None if number > 8 => std::future::pending().await,
                    None => Ok(number),
                }
            }
        };
        let accepted = Rc::new(RefCell::new(Vec::new()));
        let taken = Rc::clone(&accepted);
        let accepting = each("tests", next, move |number| taken.borrow_mut().push((number, started.elapsed())));
        assert!(timeout(Duration::from_mins(1), accepting).await.is_err());
        let [(6, first), (8, second)] = accepted.borrow()[..] else { panic!("{accepted:?}") };
        let between = |from, to| Duration::from_millis(from)..=Duration::from_millis(to);
        assert!(between(75, 154).contains(&first), "four failures in a row: {first:?}");
        assert!(between(5, 11).contains(&second.saturating_sub(first)), "and a first one: {first:?}, {second:?}");
    }
}
