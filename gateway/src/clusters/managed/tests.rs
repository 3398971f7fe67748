//! What a hub's refusals do to what is known, in paused time.

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;

use super::*;

/// A hub that answers lists of ManagedClusters as told, and ends every watch at once.
#[derive(Default)]
struct Scripted {
    /// Of lists; 200: one of the name `a`.
    list: Mutex<StatusCode>,
    /// Of watches.
    watch: Mutex<StatusCode>,
    requests: Mutex<usize>,
}

/// One that is being followed.
struct Followed {
    hub: Arc<Scripted>,
    managed: Arc<ManagedClusters>,
}

// === impl Scripted ===

impl Scripted {
    fn answer(&self, request: &Request<Body>) -> Response<Full<bytes::Bytes>> {
        *self.requests.lock() += 1;
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let code = if is_watch { *self.watch.lock() } else { *self.list.lock() };
        let text = match (code, is_watch) {
            (StatusCode::OK, true) => String::new(),
            (StatusCode::OK, false) => json!({"kind": "ManagedClusterList", "metadata": {"resourceVersion": "7"},
                "items": [{"metadata": {"name": "a", "resourceVersion": "5"}}]})
            .to_string(),
            _ => json!({"kind": "Status", "code": code.as_u16(), "message": "no"}).to_string(),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = code;
        response
    }
}

// === impl Followed ===

impl Followed {
    fn start(list: StatusCode, purpose: Purpose) -> Self {
        let hub = Arc::new(Scripted { list: Mutex::new(list), ..Scripted::default() });
        let scripted = Arc::clone(&hub);
        let service = tower::service_fn(move |request: Request<Body>| {
            let response = scripted.answer(&request);
            async move { Ok::<_, kube::Error>(response) }
        });
        let client = Client::new(service, "default");
        let managed = Arc::new(ManagedClusters::default());
        tokio::spawn(run(Hub::new(client.clone(), client, "vela-system"), Arc::clone(&managed), purpose));
        Self { hub, managed }
    }

    /// Lists are answered with `code` for `seconds`.
    async fn answering(&self, code: StatusCode, seconds: u64) {
        *self.hub.list.lock() = code;
        sleep(Duration::from_secs(seconds)).await;
    }

    fn knows(&self) -> bool {
        self.managed.current().get("a").is_some()
    }

    fn requests(&self) -> usize {
        std::mem::take(&mut self.hub.requests.lock())
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_move_clusters() {
    let followed = Followed::start(StatusCode::OK, Purpose::Location);
    followed.managed.known().await;
    assert!(followed.knows());
    for code in [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE] {
        followed.answering(code, 3600).await;
        assert!(followed.knows(), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_must_stay_gone_before_it_counts() {
    let followed = Followed::start(StatusCode::OK, Purpose::Location);
    followed.managed.known().await;
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(followed.knows());
    followed.answering(StatusCode::OK, 60).await;
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(followed.knows(), "counted from the first answer of a row");
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(!followed.knows() && followed.managed.current().kind().is_none());
    followed.answering(StatusCode::OK, 40).await;
    assert!(followed.knows());
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_may_not_know_where_clusters_are_is_not_ready() {
    let followed = Followed::start(StatusCode::FORBIDDEN, Purpose::Location);
    assert!(timeout(Duration::from_mins(10), followed.managed.known()).await.is_err());
    *followed.hub.list.lock() = StatusCode::OK;
    assert!(timeout(Duration::from_secs(40), followed.managed.known()).await.is_ok());
    let none = Followed::start(StatusCode::NOT_FOUND, Purpose::Location);
    assert!(timeout(Duration::from_secs(5), none.managed.known()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_look_asks_rarely() {
    let followed = Followed::start(StatusCode::FORBIDDEN, Purpose::Display);
    followed.managed.known().await;
    sleep(Duration::from_hours(1)).await;
    assert!((6..=8).contains(&followed.requests()));
    *followed.hub.list.lock() = StatusCode::OK;
    followed.managed.look();
    followed.answering(StatusCode::OK, 1).await;
    assert!(followed.knows());
    // Nobody's credential goes anywhere by it.
    followed.answering(StatusCode::FORBIDDEN, 5).await;
    assert!(!followed.knows());
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_does_not_list_without_pause() {
    let followed = Followed::start(StatusCode::OK, Purpose::Location);
    for code in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND] {
        *followed.hub.watch.lock() = code;
        sleep(Duration::from_mins(10)).await;
        followed.requests();
        sleep(Duration::from_mins(10)).await;
        let requests = followed.requests();
        assert!((20..=60).contains(&requests), "{code}: {requests}");
        assert!(followed.knows());
    }
}
