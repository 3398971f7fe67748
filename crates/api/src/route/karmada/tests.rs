//! A golden table of the group's own paths.

use crate::route::dialect::golden;
use crate::route::{Dialects, KarmadaMode, Served};

const GROUP: &str = "/apis/cluster.karmada.io";
const PREFIX: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

#[test]
fn golden_table() {
    let paths = ["", "/", "?watch=1", "/c1", "/c1/", "/c1?watch=true", "/c1/status", "/status", "/C1", "/c1/x", "x"];
    let reads = paths.iter().map(|path| format!("GET {PREFIX}{path}"));
    let writes = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        .iter()
        .flat_map(|method| ["", "/c1", "/c1/status"].map(|path| format!("{method} {PREFIX}{path}")));
    let documents = ["/apis", "/apis/", "/openapi/v3", "/openapi/v3/apis/cluster.karmada.io/v1alpha1"];
    let documents = documents.iter().map(|path| format!("GET {path}"));
    let requests: Vec<String> = reads.chain(writes).chain(documents).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    let on = Served::Gateway(Dialects { kcp: false, karmada: KarmadaMode::Standalone });
    insta::assert_snapshot!("on", golden::table(on, &requests));
    let more = ["/openapi/v2", "/openapi/v2x", "/openapi/v3/apis/cluster.karmada.io", "/apis/cluster.karmada.io"];
    let more = more.iter().map(|path| format!("GET {path}"));
    let odd = [
        "/v1alpha1/../x",
        "/v1alpha1/%2e%2E/x",
        "/v1alpha1/clusters/c1/proxy/api",
        "//v1alpha1/clusters",
        "/v1alpha1%2Fclusters%2Fc1%2Fproxy%2Fapi",
        "/v1alpha1/clusters/c1/%70roxy/api",
        "/v1alpha1/clusters/c1\\proxy/api",
    ];
    let odd = odd.iter().map(|tail| format!("GET /apis/cluster.karmada.io{tail}"));
    let other = ["TRACE /apis/cluster.karmada.io/v1alpha1", "POST /apis", "POST /openapi/v2"].map(str::to_owned);
    let described = ["GET", "HEAD", "POST", "OPTIONS"]
        .iter()
        .flat_map(|method| ["", "/", "/v1alpha1", "/v1alpha1/"].map(|tail| format!("{method} {GROUP}{tail}")));
    let beside: Vec<_> = more.chain(odd).chain(other).chain(described).collect();
    let beside: Vec<_> = requests.iter().copied().chain(beside.iter().map(String::as_str)).collect();
    let served = Served::Gateway(Dialects { kcp: false, karmada: KarmadaMode::Beside });
    insta::assert_snapshot!("beside", golden::table(served, &beside));
    insta::assert_snapshot!("off", golden::table(Served::default(), &requests));
}
