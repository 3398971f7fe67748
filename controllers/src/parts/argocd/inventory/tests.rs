use api::cluster_name::ClusterName;
use register::profile::GatewayAddress;
use secrecy::SecretString;

use super::*;

fn inventory(limit: usize, clusters: usize) -> Inventory {
    let argocd = Argocd { namespace: "argocd".into(), account: ("argocd".into(), "deployer".into()) };
    let (inventory, gateway) = (Inventory::new(limit, &argocd), GatewayAddress { url: "https://g".into(), ca: None });
    for number in 0..clusters {
        let name = ClusterName::parse(&format!("c{number}")).unwrap();
        inventory.put_cluster(name.as_str(), true);
        let secret = Content::new(&name, &gateway, &SecretString::from("t")).secret(&name);
        let (cluster, held) = HeldSecret::read(&secret).unwrap();
        inventory.put_secret(cluster, held);
    }
    inventory
}

#[tokio::test(start_paused = true)]
async fn few_that_go_lose_their_secret_and_a_crowd_keeps_it_for_a_while() {
    let inventory = inventory(2, 5);
    assert!(inventory.due().now.is_empty());
    inventory.remove_cluster("c0");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(inventory.due().now[0].0, "c0");
    inventory.remove_secret("c0");
    for name in ["c1", "c2", "c3"] {
        inventory.remove_cluster(name);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    let due = inventory.due();
    assert_eq!((due.now.len(), due.held), (0, 3), "too many at once");
    // A cluster that is back keeps its Secret.
    inventory.put_cluster("c1", true);
    tokio::time::advance(Duration::from_mins(10)).await;
    let due = inventory.due();
    assert_eq!((due.now.len(), due.held), (2, 0), "they are gone for long enough");
    // A person's refusal is not part of a mass deletion.
    let refused = self::inventory(0, 3);
    for name in ["c0", "c1", "c2"] {
        refused.put_cluster(name, false);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(refused.due().now.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_one_list_lacks_keeps_its_secret_until_another_lacks_it() {
    let inventory = inventory(20, 3);
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>();
    inventory.list_clusters(&named(&["c0", "c1"]));
    tokio::time::advance(Duration::from_secs(1)).await;
    let due = inventory.due();
    assert!(due.now.is_empty() && !due.is_to_list, "one list is not enough");
    let again = due.again.expect("it is listed again") - Instant::now();
    assert!(again > BETWEEN_LISTS && again < 2 * BETWEEN_LISTS, "{again:?}");
    tokio::time::advance(again).await;
    // Time alone does not confirm it: there was no other list.
    let due = inventory.due();
    assert!(due.is_to_list && due.now.is_empty());
    inventory.confirm(&named(&["c0", "c1", "c2"]));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(inventory.due().now.is_empty(), "another list has it");
    tokio::time::advance(LIST_AGAIN).await;
    assert!(inventory.due().is_to_list, "the watch does not");
    inventory.confirm(&named(&["c0", "c1"]));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(inventory.due().now.iter().map(|due| due.0.as_str()).collect::<Vec<_>>(), ["c2"]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_without_a_cluster_at_the_start_is_not_removed_by_that() {
    let inventory = inventory(20, 1);
    inventory.list_clusters(&HashSet::new());
    assert!(inventory.due().now.is_empty());
    tokio::time::advance(Duration::from_mins(5)).await;
    let due = inventory.due();
    assert!(due.now.is_empty() && due.is_to_list, "its cluster's end was not seen");
    inventory.put_cluster("c0", true);
    let due = inventory.due();
    assert!(due.now.is_empty() && !due.is_to_list && due.again.is_none(), "it is there");
}

#[tokio::test(start_paused = true)]
async fn ends_seen_while_the_kind_goes_are_to_be_seen_again() {
    let inventory = inventory(20, 2);
    inventory.remove_cluster("c0");
    inventory.put_cluster("c1", false);
    inventory.doubt();
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(inventory.due().now.iter().map(|due| due.0.as_str()).collect::<Vec<_>>(), ["c1"], "a no stays one");
    tokio::time::advance(LIST_AGAIN).await;
    assert!(inventory.due().is_to_list);
}

#[tokio::test]
async fn a_list_of_strays_that_is_older_than_what_was_written_is_no_news() {
    let (inventory, name) = (inventory(20, 1), ClusterName::parse("c0").unwrap());
    let gateway = GatewayAddress { url: "https://g".into(), ca: None };
    let at = |version: &str, token: &str| {
        let mut secret = Content::new(&name, &gateway, &SecretString::from(token)).secret(&name);
        secret.metadata.uid = Some("u".to_owned());
        secret.metadata.resource_version = Some(version.to_owned());
        HeldSecret::read(&secret).unwrap().1
    };
    inventory.wrote("c0", at("9", "new"));
    assert!(!inventory.put_stray("c0", at("8", "old")));
    let written = Content::new(&name, &gateway, &SecretString::from("new"));
    assert!(matches!(inventory.difference("c0", &written), Difference::None), "what was written is forgotten");
    assert!(inventory.put_stray("c0", at("10", "old")), "it was taken off since");
    assert!(matches!(inventory.difference("c0", &written), Difference::Other { version, .. } if version == "10"));
}
