//! Fills `ManagedServiceAccounts` through the gateway, without an agent on the member.
//!
//! `register::managed_service_account` decides what is due for an account. This part makes the
//! calls to hub and member, and writes the results: each account by itself, sixteen at a time.

mod accounts;
mod addons;
mod failure;
mod member;
mod objects;
mod states;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::virtual_cluster::LOCAL;
use fleet::Fleet;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use kube::runtime::reflector::store::Writer;
use kube::{Client, Resource as _, ResourceExt as _};
use net::backoff::Backoff;
use register::managed_service_account::{Account, Judgement, MemberAccount, Step, Why};
use register::service_account_token::ServiceAccountToken;
use secrecy::ExposeSecret as _;

use self::accounts::{Accounts, NO_PERMIT, Permits, resource};
use self::addons::Addons;
use self::failure::Failure;
use self::member::{Member, MemberError};
use self::objects::{HeldSecret, HubError, Objects};
use self::states::States;
use super::Context;
use super::hub_calls::{LeaderClient, now_seconds};
use crate::calls::value;
use crate::events::{Events, Reason};
use crate::metrics::{AccountState, Metrics};
use crate::queue::Queue;
use crate::secrets::Secrets;
use crate::term::MayWrite;
use crate::wakes::{Key, Wakes};

/// Accounts in work at a time.
const AT_ONCE: u16 = 16;
/// Interval of checks of an account without events, with jitter.
const LOOKS: Backoff = Backoff::steady(Duration::from_mins(10), 0.25);
/// The part's name in `--enable` and in metrics.
const NAME: &str = "managed-serviceaccount";

struct Part {
    client: Client,
    objects: Objects,
    members: Fleet,
    accounts: Accounts,
    addons: Addons,
    watched: watches::Members,
    states: States,
    permits: Permits,
    /// Namespace of the clusters' Secrets. An account there belongs to no cluster.
    secret_namespace: String,
    events: Events,
    metrics: Metrics,
    may_write: MayWrite,
}

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let writer = Writer::new(resource());
    let accounts = Accounts { store: writer.as_reader(), wakes: Wakes::default(), resource: resource() };
    let secrets = Secrets::new(context.hub.clone(), &context.config.secret_namespace);
    let part = Arc::new(Part {
        objects: Objects::new(LeaderClient::of(&context), resource()),
        client: context.hub,
        members: context.members,
        addons: Addons::new(),
        watched: watches::Members::default(),
        states: States::new(context.metrics.accounts.clone()),
        permits: Permits::default(),
        secret_namespace: context.config.secret_namespace.clone(),
        events: context.events,
        metrics: context.metrics,
        may_write: context.term.may_write(),
        accounts,
    });
    tokio::join!(
        watches::objects(&part, writer),
        watches::tokens(&part.client, &part.accounts),
        watches::clusters(&part, &secrets),
        part.addons.follow(&part.client, &part.accounts),
        work(Arc::clone(&part)),
    );
}

async fn work(part: Arc<Part>) {
    let Accounts { store, wakes, resource } = part.accounts.clone();
    let reconcile = async |object: Arc<DynamicObject>, part: Arc<Part>| part.reconcile(&object).await;
    let retry = |object: Arc<DynamicObject>, failure: &Failure, part: Arc<Part>| part.retry(&object, failure);
    part.addons.known().await;
    Queue { wakes, store, resource, at_once: AT_ONCE }.run(part, reconcile, retry).await;
}

// === impl Part ===

impl Part {
    async fn reconcile(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let key = key(object);
        let mut account = Account::read(&value(object)).map_err(Failure::Unreadable)?;
        let permit = self.cluster(&account).ok().map(|cluster| self.permits.of(&cluster));
        if let Some(None) = permit {
            return Ok(Action::requeue(NO_PERMIT));
        }
        match account.step(self.addons.is_in(&key.0), now_seconds()) {
            Step::Leave => self.states.forget(&key),
            Step::HandOver => {
                self.objects.hold(&mut account, false).await?;
                self.states.forget(&key);
            }
            Step::Clean => self.clean(&mut account).await?,
            Step::End => self.objects.delete(&account).await?,
            Step::Keep => {
                let kept = self.keep(&mut account).await;
                if let Err(failure) = &kept
                    && failure.is_reported(self.states.failures(&key))
                {
                    self.report_failure(&account, failure).await?;
                }
                return kept.map(|due| next(&account, due));
            }
        }
        Ok(Action::await_change())
    }

    /// Gives the account a valid token. Returns the time of its renewal.
    async fn keep(&self, account: &mut Account) -> Result<i64, Failure> {
        let cluster = self.cluster(account)?;
        let held = self.objects.secret(account).await?;
        let secret = held.as_ref().map(|held| &held.secret);
        if let Some(judgement) = account.judge_secret(secret) {
            return Err(judgement.into());
        }
        let member = Member::new(&self.members, &cluster, Arc::clone(&self.may_write));
        let on_member = member.account(&account.name).await?;
        self.watched.follow(&cluster, || self.members.sender(&cluster), &self.accounts);
        match account.judge(secret, on_member.as_ref(), now_seconds()) {
            Judgement::Good { token, due } => {
                // Upstream's agent may have filled it before.
                if !account.is_held() {
                    self.objects.hold(account, true).await?;
                }
                self.report(account, &token, false).await?;
                self.states.filled(&key_of(account));
                Ok(due)
            }
            Judgement::Due(why) => self.fill(account, held.as_ref(), (&member, on_member), why).await,
            other => Err(other.into()),
        }
    }

    async fn fill(
        &self,
        account: &mut Account,
        held: Option<&HeldSecret>,
        (member, on_member): (&Member, Option<MemberAccount>),
        why: Why,
    ) -> Result<i64, Failure> {
        let key = key_of(account);
        if let Some(rest) = self.states.rests(&key) {
            return Ok(now_seconds().saturating_add(i64::try_from(rest.as_secs()).unwrap_or_default()));
        }
        let validity = account.validity()?;
        // Before the member has anything that the account would leave behind.
        if !account.is_held() {
            self.objects.hold(account, true).await?;
        }
        let on_member = match on_member {
            Some(on_member) => on_member,
            None => member.create_account(&account.name).await?,
        };
        account.check_account(&on_member)?;
        let authority = member.authority().await?;
        let token = member.token(&account.name, validity).await?;
        let (told, due) = account.check_issued(token.expose_secret().as_bytes(), &on_member, now_seconds())?;
        self.objects.put_secret(account, held, (&authority, &token)).await?;
        self.states.issued(&key);
        tracing::info!(cluster = key.0, account = key.1, ?why, life = told.life(), "a token was issued");
        self.report(account, &told, true).await?;
        Ok(due)
    }

    async fn report(&self, account: &Account, token: &ServiceAccountToken, is_new: bool) -> Result<(), HubError> {
        match account.reported(token, is_new, now_seconds()) {
            Some(status) => self.objects.put_status(account, &status).await,
            None => Ok(()),
        }
    }

    /// Deletes the account's ServiceAccount on the member, whose tokens are valid until then. Only
    /// after that may the account go.
    async fn clean(&self, account: &mut Account) -> Result<(), Failure> {
        // An account without a cluster never had one.
        if let Ok(cluster) = self.cluster(account) {
            self.take_away(&cluster, &account.name).await?;
        }
        self.objects.hold(account, false).await?;
        Ok(())
    }

    async fn take_away(&self, cluster: &ClusterName, name: &str) -> Result<(), MemberError> {
        let member = Member::new(&self.members, cluster, Arc::clone(&self.may_write));
        match member.account(name).await {
            Ok(Some(on_member)) if on_member.is_managed => member.delete_account(name, &on_member).await,
            Ok(_) => Ok(()),
            // The member cannot be reached from here any more.
            Err(MemberError::NotRegistered(_)) => {
                tracing::warn!(%cluster, account = name, "the cluster is not registered: a ServiceAccount may be left");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The cluster whose name the account's namespace has. The hub itself does not count.
    fn cluster(&self, account: &Account) -> Result<ClusterName, Failure> {
        if account.namespace == self.secret_namespace || account.namespace == LOCAL {
            return Err(Failure::NoCluster);
        }
        ClusterName::parse(&account.namespace).map_err(|_| Failure::NoCluster)
    }

    async fn report_failure(&self, account: &Account, failure: &Failure) -> Result<(), HubError> {
        match account.failed(&failure.to_string(), now_seconds()) {
            Some(status) => self.objects.put_status(account, &status).await,
            None => Ok(()),
        }
    }

    fn retry(&self, object: &DynamicObject, failure: &Failure) -> Action {
        let key = key(object);
        self.metrics.failed(NAME);
        let is_reported = failure.is_reported(self.states.failures(&key));
        let after = self.states.failed(&key, if is_reported { AccountState::Failed } else { AccountState::Waiting });
        let after = ends_in(object).map_or(after, |end| after.min(end));
        if failure.is_usual() {
            tracing::debug!(cluster = key.0, account = key.1, ?after, "{failure}");
        } else {
            tracing::warn!(cluster = key.0, account = key.1, ?after, "{failure}");
        }
        if is_reported {
            self.events.publish(
                object.object_ref(&self.accounts.resource),
                Reason::TokenReportFailed,
                failure.to_string(),
            );
        } else if let Failure::Member(MemberError::Away(_) | MemberError::Broken(_)) = failure {
            self.events.publish(object.object_ref(&self.accounts.resource), Reason::ClusterAway, failure.to_string());
        }
        Action::requeue(after)
    }
}

/// When to check the account next.
fn next(account: &Account, due: i64) -> Action {
    let due = account.end().map_or(due, |end| due.min(end));
    Action::requeue(until(due).min(LOOKS.wait(0)))
}

/// Time until the account's own end, if that is still to come.
fn ends_in(object: &DynamicObject) -> Option<Duration> {
    let account = Account::read(&value(object)).ok()?;
    account.end().filter(|end| *end > now_seconds()).map(until)
}

/// Something due in a second is due when that second is over.
fn until(moment: i64) -> Duration {
    let seconds = u64::try_from(moment.saturating_sub(now_seconds())).unwrap_or_default();
    Duration::from_secs(seconds.saturating_add(1))
}

fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn key_of(account: &Account) -> Key {
    (account.namespace.clone(), account.name.clone())
}
