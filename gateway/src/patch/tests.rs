//! Tests with a hub that is a function: late objects, late permissions, and the exact requests.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use kit::pki::Authority;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.cluster.core.oam.dev";
const SECRET: &str = "/api/v1/namespaces/vela-system/secrets/gateway-tls";

/// The hub's objects, and the requests that it received.
#[derive(Default)]
struct Hub {
    secret: Option<Value>,
    api_service: Option<Value>,
    /// Number of requests to refuse first.
    refusals: usize,
    /// Number of reads of the Secret before it exists.
    late: usize,
    requests: usize,
    patches: Vec<Value>,
}

// === impl Hub ===

impl Hub {
    fn with(secret: Value, api_service: Value) -> Self {
        Self { secret: Some(secret), api_service: Some(api_service), ..Self::default() }
    }

    fn answer(&mut self, request: &Request<()>, body: &[u8]) -> (StatusCode, Value) {
        self.requests += 1;
        if self.refusals > 0 {
            self.refusals -= 1;
            return failure(StatusCode::FORBIDDEN, "User \"job\" cannot do that");
        }
        let object = match request.uri().path() {
            SECRET if self.late > 0 => {
                self.late -= 1;
                return failure(StatusCode::NOT_FOUND, "not found");
            }
            SECRET => &self.secret,
            API_SERVICE => &mut self.api_service,
            other => panic!("nobody should ask for {other}"),
        };
        let Some(object) = object else { return failure(StatusCode::NOT_FOUND, "not found") };
        if request.method() == Method::PATCH {
            assert_eq!(request.headers()["content-type"], "application/merge-patch+json");
            self.patches.push(serde_json::from_slice(body).unwrap());
        }
        (StatusCode::OK, object.clone())
    }
}

fn failure(code: StatusCode, message: &str) -> (StatusCode, Value) {
    let reason = if code == StatusCode::NOT_FOUND { "NotFound" } else { "Forbidden" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason,
        "code": code.as_u16()});
    (code, status)
}

fn client(hub: &Arc<Mutex<Hub>>) -> Client {
    let hub = Arc::clone(hub);
    let service = tower::service_fn(move |request: Request<Body>| {
        let hub = Arc::clone(&hub);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let (code, value) = hub.lock().answer(&Request::from_parts(head, ()), &body);
            let mut response = Response::new(Full::from(value.to_string()));
            *response.status_mut() = code;
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, "default")
}

fn secret(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gateway-tls"}, "data": data})
}

fn api_service(tls: &Value) -> Value {
    let mut spec = json!({"group": "cluster.core.oam.dev", "version": "v1alpha1", "groupPriorityMinimum": 2000,
        "versionPriority": 10, "service": {"name": "gateway", "namespace": "vela-system", "port": 9443}});
    spec.as_object_mut().unwrap().extend(tls.as_object().unwrap().clone());
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1alpha1.cluster.core.oam.dev"}, "spec": spec})
}

fn bundle() -> String {
    BASE64.encode(Authority::new("gateway-ca").root_pem())
}

fn args(more: &[&str]) -> Args {
    let given = ["patch", "--secret-namespace=vela-system", "--secret-name=gateway-tls"];
    Args::parse_from(given.iter().chain(more).map(OsString::from).collect()).unwrap()
}

/// How the run ends with `hub`, and the hub's state after it.
async fn patch(hub: Hub, more: &[&str]) -> (Result<(), String>, Hub) {
    let hub = Arc::new(Mutex::new(hub));
    let done = until_done(&client(&hub), &args(more)).await.map_err(|error| error.to_string());
    let seen = std::mem::take(&mut *hub.lock());
    (done, seen)
}

#[tokio::test]
async fn a_placeholder_and_skipped_verification_are_replaced_in_one_patch() {
    let right = bundle();
    let expected = json!({"spec": {"caBundle": right, "insecureSkipTLSVerify": false}});
    for wrong in [
        json!({"caBundle": "Cg=="}),
        json!({"insecureSkipTLSVerify": true}),
        json!({}),
        json!({"caBundle": bundle()}), // of another CA
        json!({"caBundle": right, "insecureSkipTLSVerify": true}),
    ] {
        let (done, hub) = patch(Hub::with(secret(&json!({"ca": right})), api_service(&wrong)), &[]).await;
        assert_eq!((done, &*hub.patches), (Ok(()), &[expected.clone()][..]), "{wrong}");
    }
}

#[tokio::test]
async fn what_is_right_is_left_alone() {
    let right = bundle();
    for tls in [json!({"caBundle": right}), json!({"caBundle": right, "insecureSkipTLSVerify": false})] {
        let hub = Hub::with(secret(&json!({"ca.crt": right})), api_service(&tls));
        let (done, hub) = patch(hub, &["--secret-ca-bundle-key=ca.crt"]).await;
        assert_eq!((done, hub.patches), (Ok(()), vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn objects_and_rights_may_come_late() {
    let hub = Hub { refusals: 3, late: 3, ..Hub::with(secret(&json!({"ca": bundle()})), api_service(&json!({}))) };
    let (done, hub) = patch(hub, &[]).await;
    assert_eq!((done, hub.patches.len()), (Ok(()), 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_patience_names_what_is_missing() {
    let (full, some) = (secret(&json!({"ca": bundle()})), api_service(&json!({})));
    let wrong_keys = secret(&json!({"tls.crt": "Cg==", "tls.key": "Cg=="}));
    for (hub, told) in [
        (Hub::default(), "Secret vela-system/gateway-tls does not exist"),
        (Hub::with(secret(&json!({})), some.clone()), "has no key \"ca\": it has none"),
        (Hub::with(wrong_keys, some.clone()), "has no key \"ca\": it has tls.crt, tls.key"),
        (Hub::with(secret(&json!({"ca": "Cg=="})), some.clone()), "holds no PEM block labelled CERTIFICATE"),
        (
            Hub { secret: Some(full.clone()), ..Hub::default() },
            "APIService v1alpha1.cluster.core.oam.dev does not exist",
        ),
        (
            Hub { refusals: usize::MAX, ..Hub::with(full, some) },
            "cannot read Secret vela-system/gateway-tls: User \"job\" cannot do that",
        ),
    ] {
        let start = Instant::now();
        let (done, hub) = patch(hub, &["--timeout=1m"]).await;
        let error = done.unwrap_err();
        assert!(error.starts_with("gave up after 60s: ") && error.contains(told), "{told} missing in: {error}");
        assert!(hub.patches.is_empty());
        let waited = start.elapsed();
        assert!(waited <= Duration::from_mins(1) && waited > Duration::from_secs(50), "{waited:?}");
        assert!((12..=32).contains(&hub.requests), "{} requests in a minute", hub.requests);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_hangs_is_given_up_too() {
    let service =
        tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Full<_>>, kube::Error>>());
    let client = Client::new::<_, Full<bytes::Bytes>, _>(service, "default");
    let start = Instant::now();
    let error = until_done(&client, &args(&["--timeout=1m10s"])).await.unwrap_err().to_string();
    assert!(error.contains("the hub did not answer"), "{error}");
    assert!(start.elapsed() <= Duration::from_secs(70), "{:?}", start.elapsed());
}

#[test]
fn the_name_or_the_first_argument_asks_for_it() {
    let asked = |words: &[&str]| {
        let arguments = requested(words.iter().map(OsString::from))?;
        Some(arguments.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(asked(&["/patch", "--timeout=1s"]).unwrap()[1], "--timeout=1s");
    assert_eq!(asked(&["cluster-gateway", "patch", "--timeout=1s"]).unwrap(), ["patch", "--timeout=1s"]);
    for words in [&["cluster-gateway"][..], &["/apiserver", "apiserver"], &["cluster-gateway", "--v", "patch"], &[]] {
        assert_eq!(asked(words), None, "{words:?}");
    }
}

#[test]
fn flags_of_the_go_gateways_helper_keep_their_spelling() {
    let args = args(&["--target-APIService=v1.other", "--secret-ca-bundle-key=bundle"]);
    assert_eq!((&*args.api_service, &*args.key), ("v1.other", "bundle"));
    let missing = Args::parse_from(vec!["patch".into()]).unwrap_err().to_string();
    assert!(missing.contains("--secret-name") && missing.contains("--secret-namespace"), "{missing}");
}
