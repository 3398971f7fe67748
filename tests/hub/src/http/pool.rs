//! A caller whose connections are kept for its next requests. Most requests of these tests look
//! whether something has happened yet, several times a second, and a new connection costs both
//! sides five times what such a request does.

use std::fmt;

use anyhow::Result;
use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use tokio::task::yield_now;

use super::{Client, Kept, Response, Unanswered, apart, until_sent};

/// Most connections that wait for a request: more than tests run at a time.
const MOST: usize = 8;
/// Turns in which a connection learns that its server has closed it: its socket is looked at, it
/// reads the end, and says so.
const TURNS: usize = 3;

/// A caller of one server.
pub struct Pool {
    client: Client,
    idle: Mutex<Vec<Kept>>,
}

// === impl Pool ===

impl Pool {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, idle: Mutex::default() }
    }

    /// The same caller with a new connection for each request.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Like [`Client::get`].
    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        self.send(&Method::GET, path, headers, &Bytes::new())
    }

    /// Like [`Client::send`].
    pub(crate) fn send(&self, method: &Method, path: &str, headers: &[(&str, &str)], body: &Bytes) -> Result<Response> {
        until_sent(|| apart(|| self.send_once(method, path, headers, body)))
    }

    fn send_once(&self, method: &Method, path: &str, headers: &[(&str, &str)], body: &Bytes) -> Result<Response> {
        if let Some(mut kept) = self.open() {
            match kept.send(method, path, headers, body.clone()) {
                Ok(response) => {
                    self.keep(kept);
                    return Ok(response);
                }
                // The server may have closed it just now. A write may have arrived before that, and
                // an answer that breaks off is what the server sent.
                Err(error) if *method == Method::GET && error.is::<Unanswered>() => {}
                Err(error) => return Err(error),
            }
        }
        let mut kept = self.client.keep()?;
        let response = kept.send(method, path, headers, body.clone())?;
        self.keep(kept);
        Ok(response)
    }

    /// A waiting connection that its server has not closed, as one does that is stopped.
    fn open(&self) -> Option<Kept> {
        loop {
            let kept = self.idle.lock().pop()?;
            if kept.is_open() {
                return Some(kept);
            }
        }
    }

    fn keep(&self, kept: Kept) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST {
            idle.push(kept);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Drop for Pool {
    /// Also within a runtime, where none may be waited for.
    fn drop(&mut self) {
        self.idle.get_mut().drain(..).for_each(|kept| kept.runtime.shutdown_background());
    }
}

// === impl Kept ===

impl Kept {
    fn is_open(&self) -> bool {
        self.runtime.block_on(async {
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
        !self.sender.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use kit::member::raw::{Act, RawMember};
    use kit::member::{FakeMember, MemberOptions, Reply};
    use kit::pki::ALPN_H1;
    use kit::wait::{WAIT, eventually};

    use super::*;

    async fn started(options: MemberOptions) -> FakeMember {
        let server = FakeMember::start(MemberOptions { alpn: ALPN_H1, ..options }).await;
        server.on_any(|_| Reply::full(200, &[], "it"));
        server
    }

    fn pool(server: &FakeMember) -> Pool {
        Pool::new(Client::new(server.address(), server.authority(), None))
    }

    fn asked(pool: &Pool, method: &Method) -> Result<String> {
        Ok(pool.send(method, "/x", &[], &Bytes::new())?.text())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn requests_share_a_connection_and_two_at_a_time_have_two() {
        let server = started(MemberOptions::default()).await;
        let pool = pool(&server);
        for method in [Method::GET, Method::POST, Method::GET] {
            assert_eq!(asked(&pool, &method).unwrap(), "it");
        }
        assert_eq!(server.connections_accepted(), 1);
        let one = pool.idle.lock().pop().unwrap();
        assert_eq!(asked(&pool, &Method::GET).unwrap(), "it");
        assert_eq!(server.connections_accepted(), 2);
        one.runtime.shutdown_background();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_that_went_and_came_back_is_asked_on_new_connections() {
        for method in [Method::GET, Method::POST] {
            let first = started(MemberOptions::default()).await;
            let (address, authority) = (first.address(), Some(first.authority().clone()));
            let pool = pool(&first);
            assert_eq!(asked(&pool, &method).unwrap(), "it");
            first.close_connections();
            eventually(WAIT, || first.connections_open() == 0).await;
            drop(first);
            eventually(WAIT, || TcpStream::connect(address).is_err()).await;
            let again = started(MemberOptions { address, authority, ..MemberOptions::default() }).await;
            assert_eq!(asked(&pool, &method).unwrap(), "it", "{method}");
            drop(again);
            eventually(WAIT, || TcpStream::connect(address).is_err()).await;
            assert!(asked(&pool, &method).is_err(), "{method}: nobody is there");
        }
    }

    /// Of a server that answers once, says `last` to the second request, and answers on any other
    /// connection: the outcome of the second request, and the connections.
    async fn second(method: &Method, last: &'static str) -> (Result<String>, usize) {
        const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nit";
        let server = RawMember::start(move |number| {
            let mut acts = Act::answer(WHOLE, Act::ReadHead);
            if number == 0 {
                acts.push(Act::write(last));
            }
            acts.push(Act::Close);
            acts
        })
        .await;
        let pool = Pool::new(Client::new(server.address(), server.authority(), None));
        assert_eq!(asked(&pool, method).unwrap(), "it");
        (asked(&pool, method), server.connection_count())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn only_a_get_without_an_answer_is_sent_again() {
        let (again, connections) = second(&Method::GET, "").await;
        assert_eq!((&*again.unwrap(), connections), ("it", 2));
        for last in ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ni", "what?\r\n\r\n"] {
            let (cut, connections) = second(&Method::GET, last).await;
            assert_eq!((cut.is_err(), connections), (true, 1), "{last:?}");
        }
        let (write, connections) = second(&Method::POST, "").await;
        assert_eq!((write.is_err(), connections), (true, 1));
    }
}
