mod user_server;

use proptest::prelude::*;

use super::*;

const ALL_ON: Dialects = Dialects { kcp: true, karmada: KarmadaMode::Standalone };

fn served(dialect: Dialect) -> Served {
    if dialect == Dialect::UserServer { Served::UserServer } else { Served::Gateway(ALL_ON) }
}

proptest! {
    /// A path written for a client parses as the same cluster, in the same dialect, without a rest.
    #[test]
    fn a_written_path_is_read_as_its_cluster(name in "[a-z0-9]([a-z0-9-]{0,70}[a-z0-9])?(\\.[a-z0-9]{1,5}){0,3}") {
        let cluster = ClusterName::parse(&name).unwrap();
        for dialect in Dialect::ALL {
            let Some(path) = dialect.path(&cluster) else {
                prop_assert!(dialect == Dialect::Kcp && name.split('.').any(|part| part.len() > 63), "{dialect:?} {name}");
                continue;
            };
            let member = Member { dialect, cluster: cluster.clone(), prefix: &path };
            prop_assert_eq!(read(&path, served(dialect)), Reading::Member(member));
        }
    }
}

#[test]
fn each_dialect_has_its_own_spelling() {
    let cluster = ClusterName::parse("root.org.ws").unwrap();
    assert_eq!(
        Dialect::ALL.map(|dialect| dialect.path(&cluster).unwrap()),
        [
            "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/root.org.ws/proxy",
            "/clusters/root:org:ws",
            "/root.org.ws",
            "/apis/cluster.karmada.io/v1alpha1/clusters/root.org.ws/proxy",
        ]
    );
}
