//! Checks whether everything is as it was before a fault.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use tokio::runtime::Handle;

use super::{MEMBERS, NEAR, Target, World};
use crate::caller::{Caller, Connections};
use crate::load::Route;

/// Limit for links, pools and the hub's view of the API to be there again: agents wait up to half a
/// minute between two tries.
const LIMIT: Duration = Duration::from_mins(3);

impl World {
    /// Waits until every way works and every link is there. An error also if a program has ended by
    /// itself. Says what worked last.
    pub fn settle(&mut self, runtime: &Handle) -> Result<String> {
        let mut routes = self.routes();
        for number in 0..Target::Gateway.count() {
            routes.extend(MEMBERS.map(|member| self.at_gateway(number, member)));
        }
        self.product.check()?;
        let mut last = "all at once".to_owned();
        wait::until("everything to work again", LIMIT, || {
            let links = self.product.check_links();
            let works = links.and_then(|()| routes.iter().try_for_each(|route| read(runtime, route)));
            works.inspect_err(|error| last = format!("{error:#}"))
        })?;
        self.product.wait_ready()?;
        self.product.check()?;
        Ok(last)
    }

    /// Reads something through one gateway.
    pub fn read_at(&self, number: usize, runtime: &Handle) -> Result<()> {
        read(runtime, &self.at_gateway(number, NEAR))
    }

    pub fn gateway_address(&self, number: usize) -> SocketAddr {
        self.product.gateway_addresses()[number]
    }

    fn at_gateway(&self, number: usize, member: &'static str) -> Route {
        let caller = Caller::with_token(self.gateway_address(number), None, &self.token, Connections::Fresh);
        super::route(member, &format!("gateway {number}"), caller)
    }
}

fn read(runtime: &Handle, route: &Route) -> Result<()> {
    debug_assert!(route.base == Testbed::proxy_path(route.member));
    runtime.block_on(route.read_marker()).map_err(|misread| anyhow!("{}: {misread:?}", route.name))
}
