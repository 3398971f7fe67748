//! Clusters come, change and go while the gateway runs, and requests for others do not notice.

mod hub;
mod just_registered;
mod kubeconfig;
mod manifests;
mod removed;
mod rotation;

use system_tests::prelude::*;

/// How soon a change of a cluster takes effect, on a busy machine too. Where a second is promised,
/// a second is measured.
const EFFECTIVE: Duration = Duration::from_secs(5);
/// A path of the members.
const PATH: &str = "/api/v1/nodes";

/// A member that answers everything.
async fn member(options: MemberOptions) -> FakeMember {
    let member = FakeMember::start(options).await;
    member.on_any(|_| Reply::full(200, &[], ""));
    member
}

/// The Secret of [`CLUSTER`](system_tests::CLUSTER) at `member` with this token.
fn secret(member: &FakeMember, token: &str) -> ClusterSecret {
    cluster(CLUSTER, member).token(token)
}

fn is_ok(answer: &Answer) -> bool {
    answer.status == 200
}
