//! Objects that register clusters, with changes made to them, and the conditions for any reading.

use api::secret::{ClusterEndpoint, Credential, Endpoint, Scheme, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use register::Rules;
use register::endpoints::Endpoints;
use register::reading::{Reading, SecretObject, SecretReference};
use serde_json::{Map, Value};

/// The program that is allowed.
pub const PROGRAM: &str = "x";
/// The variable that is allowed, and the one that the provider of profiles sets.
const VARIABLE: &str = "A";
pub const PROVIDERS_VARIABLE: &str = "B";
/// In every text that must not be repeated.
const CANARY: &str = "~secret~";

/// A source object, and the Secret it may refer to.
pub struct Pair {
    pub object: Value,
    /// `None` where it is refused.
    pub secret: Option<SecretObject>,
}

/// `good`, which has `object` and `secret`, changed line by line: `POINTER VALUE`, where a value
/// that is no JSON is a text, and other lines count for nothing. The `stringData` of a Secret
/// becomes `data`.
pub fn changed(mut good: Value, input: &[u8]) -> Option<Pair> {
    let lines = std::str::from_utf8(input).ok()?.lines();
    for line in lines.filter(|line| line.starts_with("/object") || line.starts_with("/secret")) {
        let (pointer, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        set(&mut good, pointer, value);
    }
    encode(&mut good["secret"]);
    let secret = match SecretObject::read(&good["secret"]) {
        Ok(secret) => Some(secret),
        Err(refused) => {
            told(&refused.to_string());
            None
        }
    };
    Some(Pair { object: good["object"].take(), secret })
}

fn set(document: &mut Value, pointer: &str, value: Value) {
    let mut at = document;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/");
        let index = part.parse::<usize>().unwrap_or(usize::MAX);
        if at.as_array().is_some_and(|list| index < list.len()) {
            at = &mut at[index];
        } else {
            if !at.is_object() {
                *at = Map::new().into();
            }
            at = &mut at[part.as_str()];
        }
    }
    *at = value;
}

fn encode(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let data = secret.entry("data").or_insert_with(|| Map::new().into());
    let Some(data) = data.as_object_mut() else { return };
    for (key, text) in texts {
        data.insert(key, text.as_str().map_or(Value::Null, |text| STANDARD.encode(text).into()));
    }
}

/// An operator's rules, as strict as by default.
pub fn rules() -> Rules {
    let denied = ["169.254.0.0/16", "fe80::/10"].iter().filter_map(|network| network.parse().ok()).collect();
    let own = Endpoint::parse("https://gateway:9443", false).into_iter().collect();
    Rules {
        exec_commands: vec![PROGRAM.to_owned()],
        exec_env: vec![VARIABLE.to_owned()],
        allow_insecure: false,
        endpoints: Endpoints { denied, own, ..Endpoints::default() },
    }
}

/// The conditions that hold for every reading.
pub fn hold(reading: &Reading) {
    let cluster = match reading {
        Reading::Register(cluster) => cluster,
        Reading::Waiting(waiting) => return told(&waiting.to_string()),
        Reading::Refused(refused) => return told(&refused.to_string()),
        Reading::Paused => return,
    };
    cluster.document(None, "a").expect("what is accepted can be written");
    assert!(cluster.trust != Trust::Insecure, "not verified, which nobody allowed");
    if let Credential::Exec(program) = &cluster.credential {
        assert_eq!(program.command, PROGRAM);
        // Variables for the operator's own provider are the operator's.
        let listed = |name: &str| [VARIABLE, PROVIDERS_VARIABLE].contains(&name);
        assert!(program.env.iter().all(|(name, _)| listed(name)), "the program is another");
    }
    if let ClusterEndpoint::Const(fixed) = &cluster.endpoint {
        assert_eq!(fixed.url.scheme, Scheme::Https);
        rules().endpoints.check("", &fixed.url).expect("an address that is allowed");
        let proxy = fixed.proxy.iter().map(|proxy| &proxy.host);
        proxy.for_each(|host| rules().endpoints.check_host("", host).expect("a proxy that is allowed"));
    }
    let reserved = ["kubernetes.io", "k8s.io", "x-k8s.io", "oam.dev"];
    let places = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone", "cluster.core.oam.dev/provider"];
    for label in cluster.labels.keys().filter(|label| !places.contains(&label.as_str())) {
        let domain = label.split_once('/').map_or("", |(domain, _)| domain);
        let is_in = |reserved: &&str| domain == *reserved || domain.ends_with(&format!(".{reserved}"));
        assert!(!reserved.iter().any(is_in), "{label}");
    }
    let hash = |uid| register::fingerprint::of(cluster, uid);
    assert!(hash("u") == hash("u") && hash("u") != hash("v"));
}

/// Of a kind whose objects refer to Secrets: `good`, changed, with its Secret and without.
pub fn check_referring(
    good: Value,
    input: &[u8],
    references: fn(&Value) -> Vec<SecretReference>,
    read: fn(&Value, &[&SecretObject], &Rules) -> Reading,
) {
    let Some(pair) = changed(good, input) else { return };
    let secrets: Vec<_> = pair.secret.iter().collect();
    are_segments(&references(&pair.object));
    hold(&read(&pair.object, &[], &rules()));
    hold(&read(&pair.object, &secrets, &rules()));
}

/// Names of Secrets become segments of paths.
fn are_segments(references: &[SecretReference]) {
    for reference in references {
        for part in [&reference.namespace, &reference.name] {
            assert!(!part.is_empty() && !part.contains(['/', '%', '?', '#', '\\']) && part != "." && part != "..");
        }
    }
}

fn told(text: &str) {
    assert!(!text.contains(CANARY) && !text.chars().any(char::is_control), "{text}");
}
