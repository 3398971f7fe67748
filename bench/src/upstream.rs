//! A fast upstream that stands for a member: nginx with TLS, HTTP/2 and HTTP/1.1 by ALPN, answering
//! from memory.

pub mod sink;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Method, StatusCode};
use hub_tests::http::Client;
use hub_tests::process::Process;
use hub_tests::{ports, wait};
use kit::pki::{Authority, Leaf};

use crate::nginx::Nginx;
use crate::route::Destination;
use harness::usage::Tree;

/// Under which gateways know it.
pub const CLUSTER: &str = "upstream";
/// Credential of requests to it; it does not check it.
pub const TOKEN: &str = "upstream-token";
/// 1 KiB of JSON.
pub const SMALL: &str = "/api/v1/namespaces/default/configmaps/small";
/// 100 MiB.
pub const LARGE: &str = "/api/v1/namespaces/default/configmaps/large";
/// Takes a body of any size, says 200 after its end.
pub const SINK: &str = "/api/v1/namespaces/default/configmaps/sink";
/// Is answered with an event, and then with nothing more.
pub const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true";

const SMALL_LENGTH: usize = 1024;
const LARGE_LENGTH: u64 = 100 << 20;
const SMOKE_LARGE_LENGTH: u64 = 4 << 20;
const START_LIMIT: Duration = Duration::from_secs(10);
const CONFIGURATION: &str = include_str!("upstream/nginx.conf");

pub struct Upstream {
    pub address: SocketAddr,
    pub authority: Arc<Authority>,
    /// nginx, and the program behind it that reads uploads.
    pub tree: Tree,
    /// Size of the answer to [`LARGE`], in bytes.
    pub large: u64,
    /// A file of the same size, to be sent to [`SINK`].
    pub large_file: PathBuf,
    processes: [Process; 2],
}

// === impl Upstream ===

impl Upstream {
    /// Starts it with files in `directory` and waits until it answers. `smoke` makes [`LARGE`]
    /// small.
    pub fn start(directory: &Path, smoke: bool) -> Result<Self> {
        let nginx = Nginx::find()?;
        let directory = &directory.join("upstream");
        fs::create_dir(directory)?;
        let authority = Arc::new(Authority::new("upstream-ca"));
        authority.issue(&Leaf::server(CLUSTER)).write_to(directory, "server")?;
        let large = if smoke { SMOKE_LARGE_LENGTH } else { LARGE_LENGTH };
        let large_file = directory.join("large");
        File::create(&large_file)?.set_len(large)?; // a hole: no disk is read for it
        let sink = sink::start(directory)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let nginx = nginx.start(CLUSTER, &configuration(address, directory), directory)?;
        let tree = Tree::new([nginx.id(), sink.id()]);
        let mut upstream = Self { address, authority, tree, large, large_file, processes: [nginx, sink] };
        upstream.wait_ready()?;
        Ok(upstream)
    }

    /// The destination behind a [`crate::route::Route`].
    pub fn destination(&self) -> Destination<'_> {
        let (authority, tree) = (&self.authority, &self.tree);
        Destination { cluster: CLUSTER, address: self.address, authority, tree, probe: SMALL, upgrades: false }
    }

    fn wait_ready(&mut self) -> Result<()> {
        let client = Client::new(self.address, &self.authority, None);
        let [nginx, sink] = &mut self.processes;
        wait::until("the upstream", START_LIMIT, || {
            nginx.check()?;
            sink.check()?;
            client.get(SMALL, &[])?.expect(StatusCode::OK)?;
            client.send(&Method::POST, SINK, &[], Bytes::from_static(b"{}"))?.expect(StatusCode::OK)
        })
        .with_context(|| nginx.log_tail())?;
        Ok(())
    }
}

fn configuration(address: SocketAddr, directory: &Path) -> String {
    CONFIGURATION
        .replace("@DIRECTORY@", &directory.display().to_string())
        .replace("@ADDRESS@", &address.to_string())
        .replace("@SMALL_PATH@", SMALL)
        .replace("@SMALL_BODY@", &small())
        .replace("@LARGE_PATH@", LARGE)
        .replace("@SINK_PATH@", SINK)
        .replace("@WATCH_PATH@", WATCH.split('?').next().unwrap_or_default())
        .replace("@SINK@", &sink::socket(directory).display().to_string())
}

/// A `ConfigMap` that fills 1 KiB.
fn small() -> String {
    let object = |data: &str| {
        format!(
            concat!(
                r#"{{"kind":"ConfigMap","apiVersion":"v1","#,
                r#""metadata":{{"name":"small","namespace":"default"}},"data":{{"data":"{data}"}}}}"#
            ),
            data = data
        )
    };
    object(&"x".repeat(SMALL_LENGTH - object("").len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_answer_is_a_kibibyte_of_json() {
        let text = small();
        assert_eq!(text.len(), SMALL_LENGTH);
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["metadata"]["name"], "small");
    }
}
