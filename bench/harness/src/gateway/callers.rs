//! The small GET in each dialect, through a gateway that serves all of them. The member is asked as
//! the caller, by impersonation, in every case, as Karmada's paths have it: so the cases are
//! comparable with each other.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::ports;
use kit::client::Client;
use kit::hub::TokenUser;
use kit::member::{Recorded, Reply};
use serde_json::{Value, json};

use super::load::{self, Asked};
use super::{CLUSTER, Fakes, SMALL, TOKEN, bearer, path};
use crate::program::Program;
use crate::{Case, Floor, Harness, Player};

pub const NAMES: [&str; 4] = ["caller-native", "caller-karmada", "caller-kcp", "caller-user-server"];

const CALLER: &str = "jane";
/// Groups of the caller, as the hub knows it.
const TEAMS: [&str; 2] = ["engineering:team-0", "engineering:team-1"];
/// The gateway adds this group to every caller with a token. Under Karmada's paths it does not send
/// it to members, which add it themselves.
const AUTHENTICATED: &str = "system:authenticated";
/// Another caller, and its only group: the registered credential may not impersonate that one.
const VISITOR_TOKEN: &str = "visitor-token";
const VISITORS: &str = "visitors";
/// The member's path at which a credential learns its rights. Asked for Karmada's paths only.
const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// A gateway that serves every dialect and is ready, and every case for it.
pub fn harness<P: Player>(floor: &Floor<'_>) -> Result<Harness<P>> {
    let program = floor.program(Program::Gateway)?;
    let fakes = Fakes::start()?;
    fakes.hub.add_token(TOKEN, TokenUser::new(CALLER, &TEAMS));
    fakes.hub.add_token(VISITOR_TOKEN, TokenUser::new("joe", &[VISITORS]));
    let rules = rules();
    fakes.member.on(REVIEW, move |_| Reply::json(201, &rules));
    let user_server = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let gateway = fakes.start_gateway("gateway-dialects", &program, floor, flags(user_server))?;
    let cases = cases(&Rc::new(fakes), user_server)?;
    Ok(Harness { programs: vec![gateway], cases })
}

fn flags(user_server: SocketAddr) -> Vec<String> {
    vec![
        "--kcp-dialect".to_owned(),
        "--karmada-dialect=standalone".to_owned(),
        format!("--ocm-user-server-listen={user_server}"),
        "--feature-gates=ClientIdentityPenetration=true".to_owned(),
        // A review in the rounds of one case only would be a difference between the spellings.
        "--authentication-token-webhook-cache-ttl=1h".to_owned(),
        "--authorization-webhook-cache-authorized-ttl=1h".to_owned(),
    ]
}

/// The rights of the registered credential: all users, and groups by name, as Karmada's
/// impersonator has them. The gateway then looks up each group of a caller.
fn rules() -> Value {
    let rules = [rule("users", &[]), rule("groups", &TEAMS)];
    json!({"kind": "SelfSubjectRulesReview", "status": {"resourceRules": rules, "incomplete": false}})
}

fn rule(resource: &str, names: &[&str]) -> Value {
    json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": [resource], "resourceNames": names})
}

fn cases(fakes: &Rc<Fakes>, user_server: SocketAddr) -> Result<Vec<Case>> {
    let [native, karmada, kcp, beside] = NAMES;
    let karmada_path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{CLUSTER}/proxy{SMALL}");
    let own = fakes.client(None);
    check_rights(fakes, &own, &karmada_path)?;
    Ok(vec![
        case(fakes, native, &own, &path(SMALL))?,
        case(fakes, karmada, &own, &karmada_path)?,
        case(fakes, kcp, &own, &format!("/clusters/{CLUSTER}{SMALL}"))?,
        case(fakes, beside, &fakes.client_of(user_server, None), &format!("/{CLUSTER}{SMALL}"))?,
    ])
}

/// Fails unless Karmada's `path` omits a group that [`rules`] lack. Without a usable answer, the
/// gateway would omit none, copy each request, and ask the member every ten seconds.
fn check_rights(fakes: &Fakes, client: &Client, path: &str) -> Result<()> {
    let visitor = Asked::new(path, &[("authorization", format!("Bearer {VISITOR_TOKEN}"))]);
    let seen = ask(fakes, client, &visitor)?;
    ensure!(told_groups(&seen).is_empty(), "the credential's rights are not used: {:?}", seen.headers);
    Ok(())
}

/// A case of GETs of `path`. Fails if the member is not asked as the caller.
fn case(fakes: &Rc<Fakes>, name: &'static str, client: &Client, path: &str) -> Result<Case> {
    let asked = Asked::new(path, &bearer());
    let seen = ask(fakes, client, &asked).with_context(|| name)?;
    let is_caller = seen.header("impersonate-user") == Some(CALLER) && told_groups(&seen) == TEAMS;
    ensure!(is_caller && seen.path() == SMALL, "{name}: the member was asked {} as {:?}", seen.target, seen.headers);
    fakes.h2(name, client, asked)
}

/// Asks once, uncounted, and returns the request that the member got.
fn ask(fakes: &Fakes, client: &Client, asked: &Asked) -> Result<Recorded> {
    let once = async {
        let connection = client.h2().await?;
        load::download(&connection, asked).await
    };
    fakes.runtime.block_on(once)?;
    fakes.member.requests().pop().context("the member was not asked")
}

/// The groups of which the member was told, without [`AUTHENTICATED`].
fn told_groups(seen: &Recorded) -> Vec<String> {
    let mut groups = seen.header_values("impersonate-group");
    groups.retain(|group| group != AUTHENTICATED);
    groups
}
