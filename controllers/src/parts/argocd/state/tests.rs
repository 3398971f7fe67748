use api::cluster_name::ClusterName;
use register::profile::Way;
use secrecy::SecretString;

use super::*;

fn state(limit: usize, clusters: usize) -> State {
    let argocd = Argocd { namespace: "argocd".into(), account: ("argocd".into(), "deployer".into()) };
    let (state, way) = (State::new(limit, &argocd), Way { url: "https://g".into(), ca: None });
    for number in 0..clusters {
        let name = ClusterName::parse(&format!("c{number}")).unwrap();
        state.put_cluster(name.as_str(), true);
        let secret = Content::new(&name, &way, &SecretString::from("t")).secret(&name);
        let (cluster, held) = Held::read(&secret).unwrap();
        state.put_secret(cluster, held);
    }
    state
}

#[tokio::test(start_paused = true)]
async fn few_that_go_lose_their_secret_and_a_crowd_keeps_it_for_a_while() {
    let state = state(2, 5);
    assert!(state.due().now.is_empty());
    state.remove_cluster("c0");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(state.due().now[0].0, "c0");
    state.remove_secret("c0");
    for name in ["c1", "c2", "c3"] {
        state.remove_cluster(name);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    let due = state.due();
    assert_eq!((due.now.len(), due.held), (0, 3), "too many at once");
    // One that is back keeps it.
    state.put_cluster("c1", true);
    tokio::time::advance(Duration::from_mins(10)).await;
    let due = state.due();
    assert_eq!((due.now.len(), due.held), (2, 0), "they are gone for long enough");
    // A person's no is no mistake of a crowd's size.
    let refused = self::state(0, 3);
    for name in ["c0", "c1", "c2"] {
        refused.put_cluster(name, false);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(refused.due().now.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_one_list_lacks_keeps_its_secret_until_another_lacks_it() {
    let state = state(20, 3);
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>();
    state.list_clusters(&named(&["c0", "c1"]));
    tokio::time::advance(Duration::from_secs(1)).await;
    let due = state.due();
    assert!(due.now.is_empty() && !due.is_to_list, "one list is not enough");
    let again = due.again.expect("it is listed again") - Instant::now();
    assert!(again > BETWEEN_LISTS && again < 2 * BETWEEN_LISTS, "{again:?}");
    tokio::time::advance(again).await;
    // Not of itself: nobody has looked.
    let due = state.due();
    assert!(due.is_to_list && due.now.is_empty());
    state.confirm(&named(&["c0", "c1", "c2"]));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(state.due().now.is_empty(), "another list has it");
    tokio::time::advance(LIST_AGAIN).await;
    assert!(state.due().is_to_list, "the watch does not");
    state.confirm(&named(&["c0", "c1"]));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(state.due().now.iter().map(|due| due.0.as_str()).collect::<Vec<_>>(), ["c2"]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_without_a_cluster_at_the_start_is_not_removed_by_that() {
    let state = state(20, 1);
    state.list_clusters(&HashSet::new());
    assert!(state.due().now.is_empty());
    tokio::time::advance(Duration::from_mins(5)).await;
    let due = state.due();
    assert!(due.now.is_empty() && due.is_to_list, "its cluster's end was not seen");
    state.put_cluster("c0", true);
    let due = state.due();
    assert!(due.now.is_empty() && !due.is_to_list && due.again.is_none(), "it is there");
}

#[tokio::test(start_paused = true)]
async fn ends_seen_while_the_kind_goes_are_to_be_seen_again() {
    let state = state(20, 2);
    state.remove_cluster("c0");
    state.put_cluster("c1", false);
    state.doubt();
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(state.due().now.iter().map(|due| due.0.as_str()).collect::<Vec<_>>(), ["c1"], "a no stays one");
    tokio::time::advance(LIST_AGAIN).await;
    assert!(state.due().is_to_list);
}

#[tokio::test]
async fn a_list_of_strays_that_is_older_than_what_was_written_is_no_news() {
    let (state, name) = (state(20, 1), ClusterName::parse("c0").unwrap());
    let way = Way { url: "https://g".into(), ca: None };
    let at = |version: &str, token: &str| {
        let mut secret = Content::new(&name, &way, &SecretString::from(token)).secret(&name);
        secret.metadata.uid = Some("u".to_owned());
        secret.metadata.resource_version = Some(version.to_owned());
        Held::read(&secret).unwrap().1
    };
    state.wrote("c0", at("9", "new"));
    assert!(!state.put_stray("c0", at("8", "old")));
    let written = Content::new(&name, &way, &SecretString::from("new"));
    assert!(matches!(state.difference("c0", &written), Difference::None), "what was written is forgotten");
    assert!(state.put_stray("c0", at("10", "old")), "it was taken off since");
    assert!(matches!(state.difference("c0", &written), Difference::Other { version, .. } if version == "10"));
}
