//! The dashboard: one page for all clusters and one for each, in the browser of the user that
//! started it.
//!
//! It serves nothing to other users ([`access`]), and asks the hub and the clusters only with the
//! user's own kubeconfig. Each page is complete when it is sent. Later changes come as a stream of
//! events, which contain only what changed.

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

/// Most concurrent streams of events: the tabs of one person.
const STREAMS: usize = 32;
/// Most clusters that are remembered because their pages were opened.
const PAGES: usize = 64;

/// What all pages share.
pub struct Dashboard {
    session: Session,
    door: Door,
    board: Board,
    /// The clusters whose pages were opened.
    pages: Mutex<BTreeMap<ClusterName, Page>>,
    streams: Arc<Semaphore>,
    interval: Duration,
}

/// What is remembered about a cluster's page.
#[derive(Debug, Default)]
struct Page {
    /// When the page was last used. `None`: it is new.
    used: Option<Instant>,
    history: History,
    parts: Parts,
}

/// The dashboard, and the socket that it listens on.
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
    /// The URL to open in a browser.
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
    /// The hub that the pages show, and their seal.
    fn server(&self) -> Server<'_> {
        Server { hub: &self.session.context, seal: self.door.seal() }
    }

    /// Changes what is remembered about a cluster's page.
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
