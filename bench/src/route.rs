//! A way to the upstream: the address to connect to, the path and headers to send, and the
//! processes whose time counts.

use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::StatusCode;
use hub_tests::http::Client;
use hub_tests::process::Process;
use hub_tests::wait;
use kit::pki::{self, Authority, Issued, Trust};
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::figure::Target;
use crate::tool::Absent;
use harness::usage::Tree;

/// Limit for a program to answer.
pub const START_LIMIT: Duration = Duration::from_secs(30);

/// A running proxy, or none (the direct way).
pub struct Route {
    pub address: SocketAddr,
    /// Put before the upstream's paths.
    pub prefix: String,
    /// `Authorization: Bearer …` and the like, as `h2load -H` takes them.
    pub headers: Vec<String>,
    /// Processes of the proxy; of the upstream itself on the direct way.
    pub tree: Tree,
    /// The authority of its certificate, which is good for `127.0.0.1` and `localhost`.
    pub trusted: Arc<Authority>,
    process: Option<Process>,
    /// Path for probing the destination.
    probe: String,
}

/// The end of a way.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    /// Under which gateways know it, and part of files' names.
    pub cluster: &'a str,
    pub address: SocketAddr,
    pub authority: &'a Arc<Authority>,
    pub tree: &'a Tree,
    /// A path that is answered with 200 at once.
    pub probe: &'a str,
    /// Whether proxies are to pass on `Upgrade:`, which some do over HTTP/1.1 alone.
    pub upgrades: bool,
}

/// The routes of a run, each started once.
#[derive(Default)]
pub struct Routes {
    running: Vec<(Target, Rc<Route>)>,
    /// Why others did not start: waiting for each of them again in every scenario would take
    /// minutes.
    broken: Vec<(Target, String)>,
}

// === impl Route ===

impl Route {
    /// URL for `path` of the upstream.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{}{path}", self.address, self.prefix)
    }

    /// TLS for connections of our own driver, which may have a certificate.
    pub fn tls(&self, identity: Option<&Issued>, alpn: &[&str]) -> Arc<ClientConfig> {
        pki::client_config(Trust::Authority(&self.trusted), identity, alpn)
    }

    /// Ends its program and starts it again as it was: a fresh one. How long that took, from the
    /// start until a request through it was answered; nothing on the direct way.
    pub fn restart(&mut self) -> Result<Duration> {
        let Some(process) = &mut self.process else { return Ok(Duration::ZERO) };
        process.stop()?;
        // Its supervisor goes a moment before the sockets of a large program do.
        wait::until_true("its port to be free", START_LIMIT, || Ok(TcpStream::connect(self.address).is_err()))?;
        let start = Instant::now();
        process.start_again()?;
        self.tree = Tree::new([process.id()]);
        self.wait_ready()?;
        Ok(start.elapsed())
    }

    /// A route through `process`, which listens at `address` with a certificate of `trusted`. It
    /// answers requests for `probe`.
    pub fn through(process: Process, address: SocketAddr, trusted: Arc<Authority>, probe: &str) -> Self {
        Self {
            address,
            prefix: String::new(),
            headers: Vec::new(),
            tree: Tree::new([process.id()]),
            trusted,
            process: Some(process),
            probe: probe.to_owned(),
        }
    }

    pub fn direct(destination: Destination<'_>) -> Self {
        Self {
            address: destination.address,
            prefix: String::new(),
            headers: vec!["Authorization: Bearer caller".to_owned()], // of a usual length
            tree: destination.tree.clone(),
            trusted: Arc::clone(destination.authority),
            process: None,
            probe: destination.probe.to_owned(),
        }
    }

    pub fn wait_ready(&mut self) -> Result<()> {
        let client = Client::new(self.address, &self.trusted, None);
        let headers = self.headers.iter().filter_map(|line| line.split_once(": ")).collect::<Vec<_>>();
        let path = format!("{}{}", self.prefix, self.probe);
        let process = &mut self.process;
        wait::until("an answer through it", START_LIMIT, || {
            process.as_mut().map_or(Ok(()), Process::check)?;
            client.get(&path, &headers)?.expect(StatusCode::OK)
        })
        .with_context(|| process.as_ref().map_or_else(String::new, Process::log_tail))?;
        Ok(())
    }
}

// === impl Routes ===

impl Routes {
    /// The one through `target`, if it was started.
    pub fn known(&self, target: Target) -> Result<Option<Rc<Route>>> {
        if let Some((_, reason)) = self.broken.iter().find(|(known, _)| *known == target) {
            bail!("{reason}");
        }
        Ok(self.running.iter().find(|(known, _)| *known == target).map(|(_, route)| Rc::clone(route)))
    }

    /// Keeps the result of starting `target`.
    pub fn keep(&mut self, target: Target, started: Result<Route>) -> Result<Rc<Route>> {
        match started {
            Ok(route) => {
                let route = Rc::new(route);
                self.running.push((target, Rc::clone(&route)));
                Ok(route)
            }
            Err(error) => {
                if !Absent::is_cause_of(&error) {
                    self.broken.push((target, format!("{error:#}")));
                }
                Err(error)
            }
        }
    }
}
