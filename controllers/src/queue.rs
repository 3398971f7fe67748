//! kube's queue over [`Wakes`]: works on objects concurrently, each with its own time of the next
//! try.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kube::Resource;
use kube::runtime::applier;
use kube::runtime::controller::{Action, Config, Error};
use kube::runtime::reflector::{ObjectRef, Store};

use crate::together;
use crate::wakes::Wakes;

/// Works on the objects of `store` whose keys come through `wakes`. Skips an object that has left
/// the store by then.
pub struct Queue<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    pub wakes: Wakes,
    pub store: Store<K>,
    pub resource: K::DynamicType,
    /// Objects that are worked on at a time.
    pub at_once: u16,
}

// === impl Queue ===

impl<K> Queue<K>
where
    K: Clone + Resource + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin,
{
    /// Works on each object. After a failure, `retry` logs it and returns the time of the next try.
    /// Never ends.
    pub async fn run<C, F, E>(
        self,
        context: Arc<C>,
        work: impl Fn(Arc<K>, Arc<C>) -> F,
        retry: impl Fn(Arc<K>, &E, Arc<C>) -> Action,
    ) where
        F: Future<Output = Result<Action, E>>,
        E: StdError + 'static,
    {
        let Self { wakes, store, resource, at_once } = self;
        let keys = wakes.stream().map(|(namespace, name)| {
            let reference = ObjectRef::new_with(&name, resource.clone());
            Ok::<_, Infallible>(if namespace.is_empty() { reference } else { reference.within(&namespace) })
        });
        // `FutureHashMap` of kube-runtime polls all its futures whenever one is woken.
        let work = |object, context| Box::pin(together::alone(work(object, context)));
        let config = Config::default().concurrency(at_once);
        applier(work, retry, context, store, keys, config)
            .for_each(|done| async move {
                if let Err(error @ Error::RunnerError(_)) = done {
                    tracing::error!(%error, "the queue has failed");
                }
            })
            .await;
    }
}
