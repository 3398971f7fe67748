//! The page: all clusters, and each of them, in the browser of the user that started it.
//!
//! Nothing is served to other users ([`access`]), and hub and clusters are asked only with the
//! user's own kubeconfig. Each page is whole as it is sent; what changes afterwards comes as a
//! stream of events, and is no more than what changed.

mod access;
mod answer;
mod board;
mod cells;
mod chart;
mod events;
mod frame;
mod html;
mod inspection;
mod links;
mod one;
mod overview;
mod response;
mod server;
mod survey;
mod traffic;
mod words;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::access::{Door, Token};
use self::board::Board;
use self::frame::Server;
use self::one::Parts;
use self::traffic::History;
use crate::session::Session;
use crate::trouble::{Result, Trouble};

/// Streams of events at a time: tabs of one person.
const STREAMS: usize = 32;
/// Clusters whose pages were opened that are remembered.
const PAGES: usize = 64;

/// What all pages share.
pub struct Dashboard {
    session: Session,
    door: Door,
    board: Board,
    /// Of the clusters whose pages were opened.
    pages: Mutex<BTreeMap<ClusterName, Page>>,
    streams: Arc<Semaphore>,
    interval: Duration,
}

/// What is remembered of a cluster's page.
#[derive(Debug, Default)]
struct Page {
    /// `None`: just made.
    used: Option<Instant>,
    history: History,
    parts: Parts,
}

/// The pages, and where they are served.
pub struct Listening {
    dashboard: Arc<Dashboard>,
    listener: TcpListener,
}

/// Binds `port` of the loopback address (0: any), and serves nothing yet.
pub async fn listen(session: &Session, port: u16, interval: Duration) -> Result<Listening> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let random = || Token::random().map_err(|_| Trouble::failed("the system provides no random numbers", ""));
    let (token, seal) = (random()?, random()?);
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let port = listener.local_addr()?.port();
        Ok::<_, io::Error>((listener, port))
    };
    let (listener, port) = bound.await.map_err(|error| {
        Trouble::failed(format!("cannot listen on {address}: {error}"), "choose another --port, or omit it")
    })?;
    let dashboard = Dashboard {
        session: session.clone(),
        door: Door::new(token, seal, port),
        board: Board::new(),
        pages: Mutex::default(),
        streams: Arc::new(Semaphore::new(STREAMS)),
        interval,
    };
    Ok(Listening { dashboard: Arc::new(dashboard), listener })
}

// === impl Listening ===

impl Listening {
    /// What to open in a browser.
    pub fn address(&self) -> String {
        self.dashboard.door.address()
    }

    /// Serves until the process ends.
    pub async fn serve(self) {
        let Self { dashboard, listener } = self;
        let survey = survey::run(&dashboard.session, &dashboard.board, dashboard.interval);
        tokio::join!(survey, server::run(listener, &dashboard));
    }
}

// === impl Dashboard ===

impl Dashboard {
    /// Whose pages they are.
    fn server(&self) -> Server<'_> {
        Server { hub: &self.session.context, seal: self.door.seal() }
    }

    /// Changes what is remembered of a cluster's page.
    fn page<T>(&self, name: &ClusterName, change: impl FnOnce(&mut Page) -> T) -> T {
        let mut pages = self.pages.lock();
        if pages.len() >= PAGES && !pages.contains_key(name) {
            let longest = pages.iter().min_by_key(|(_, page)| page.used).map(|(name, _)| name.clone());
            longest.map(|name| pages.remove(&name));
        }
        let page = pages.entry(name.clone()).or_default();
        page.used = Some(Instant::now());
        change(page)
    }
}
