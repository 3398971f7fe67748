use super::*;

fn parsed(arguments: &[&str]) -> Result<Config, String> {
    let arguments = ["cluster-gateway-controllers"].iter().chain(arguments);
    let args = parse_from(arguments).map_err(|error| error.to_string())?;
    Config::new(&args).map_err(|invalid| invalid.to_string())
}

#[test]
fn the_defaults_are_those_that_are_documented() {
    let config = parsed(&["--enable=capi,kubeconfig,capi"]).unwrap();
    assert_eq!(config.sources, [SourceName::Capi, SourceName::Kubeconfig], "each once");
    assert_eq!(config.secret_namespace, "vela-system");
    assert_eq!(config.kubefed_namespace, "kube-federation-system");
    assert_eq!(config.ocm_credential, "cluster-gateway");
    assert_eq!(config.source_removal_limit, 20);
    assert_eq!(config.admin_listen.to_string(), "127.0.0.1:8097");
    let denied: Vec<_> = config.rules.endpoints.denied.iter().map(ToString::to_string).collect();
    assert_eq!(denied, ["169.254.0.0/16", "fe80::/10"]);
    assert!(config.leader_elect && !config.rules.allow_insecure && config.rules.exec_commands.is_empty());
}

#[test]
fn every_mistake_is_told_at_once_with_its_flag() {
    let told = parsed(&[
        "--name-template=capi",
        "--name-template=capi={cluster}",
        "--name-template=other={name}",
        "--name-template=ocm={namespace}.{name}",
        "--deny-endpoints=10.0.0.0/40",
        "--gateway-url=http://gateway",
        "--secret-namespace=",
    ])
    .unwrap_err();
    for flag in [
        "--enable is required",
        "--name-template=capi: write",
        "--name-template=capi={cluster}: ",
        "other is not a source",
        "objects of ocm are in no namespace",
        "--deny-endpoints=10.0.0.0/40",
        "--gateway-url: ",
        "--secret-namespace must not be empty",
    ] {
        assert!(told.contains(flag), "{flag}: {told}");
    }
}

#[test]
fn templates_are_the_sources_own() {
    let config = parsed(&["--enable=capi", "--name-template=capi={namespace}.{name}"]).unwrap();
    let name = config.templates[&SourceName::Capi].name(Some("fleet"), "c1").unwrap();
    assert_eq!(name.as_str(), "fleet.c1");
    assert!(parsed(&["--enable=capi", "--name-template=capi={name},capi=x-{name}"]).is_err());
}

#[test]
fn parts_are_enabled_beside_sources_or_alone() {
    let config = parsed(&["--enable=clusterprofile,capi,managed-serviceaccount,clusterprofile"]).unwrap();
    assert_eq!(config.sources, [SourceName::Capi]);
    assert_eq!(config.parts, [PartName::ManagedServiceaccount, PartName::Clusterprofile], "each once");
    for part in [
        PartName::OcmRegistration,
        PartName::ManagedServiceaccount,
        PartName::Clusterprofile,
        PartName::Placement,
        PartName::ReplicaSets,
    ] {
        let config = parsed(&[&format!("--enable={}", part.as_str())]).unwrap();
        assert_eq!((config.sources.len(), config.parts), (0, vec![part]), "a part needs no source");
    }
}

#[test]
fn files_for_the_gateway_need_its_url() {
    let told = parsed(&["--enable=capi", "--gateway-ca-file=ca.crt", "--gateway-token-file=token"]).unwrap_err();
    for flag in ["--gateway-ca-file has no effect", "--gateway-token-file has no effect"] {
        assert!(told.contains(flag), "{told}");
    }
    let told = ["--enable=capi", "--gateway-url=https://gateway:8443", "--gateway-ca-file=ca.crt"];
    assert_eq!(parsed(&told).unwrap().gateway.url.as_deref(), Some("https://gateway:8443"));
}

#[test]
fn users_who_join_without_a_person_are_those_of_the_part() {
    let users = "--ocm-auto-approve-users=a,system:serviceaccount:n:b";
    let config = parsed(&["--enable=ocm-registration", users]).unwrap();
    assert_eq!(config.ocm_auto_approve_users, ["a", "system:serviceaccount:n:b"]);
    assert!(parsed(&["--enable=ocm", users]).unwrap_err().contains("--enable=ocm-registration"));
}

#[test]
fn what_never_stands_by_is_enabled() {
    let config = parsed(&["--enable=placement", "--never-stand-by=placement"]).unwrap();
    assert_eq!((config.parts, config.never_stand_by), (vec![PartName::Placement], vec![PartName::Placement]));
    assert!(parsed(&["--enable=placement"]).unwrap().never_stand_by.is_empty());
    let told = parsed(&["--enable=ocm", "--never-stand-by=placement"]).unwrap_err();
    assert!(told.contains("--enable=placement"), "{told}");
    assert!(parsed(&["--enable=placement", "--never-stand-by=ocm-registration"]).is_err(), "it has no such choice");
    let config = parsed(&["--enable=replica-sets", "--never-stand-by=replica-sets"]).unwrap();
    assert_eq!(config.never_stand_by, [PartName::ReplicaSets]);
}

#[test]
fn namespaces_of_rivals_are_of_parts_that_have_some() {
    let namespaces = "--rival-namespaces=open-cluster-management-hub,other";
    for part in ["--enable=placement", "--enable=replica-sets", "--enable=ocm-registration", "--enable=availability"] {
        assert_eq!(parsed(&[part, namespaces]).unwrap().rival_namespaces, ["open-cluster-management-hub", "other"]);
    }
    assert!(parsed(&["--enable=placement"]).unwrap().rival_namespaces.is_empty());
    let told = parsed(&["--enable=ocm", namespaces]).unwrap_err();
    assert!(told.contains("--rival-namespaces has no effect"), "{told}");
}

#[test]
fn rules_for_rollouts_are_of_replica_sets_and_of_what_tells_how_far_their_works_are() {
    assert!(!parsed(&["--enable=replica-sets"]).unwrap().rollout_needs_rules);
    for part in ["--enable=replica-sets", "--enable=manifestworks"] {
        assert!(parsed(&[part, "--rollout-needs-rules"]).unwrap().rollout_needs_rules);
    }
    let told = parsed(&["--enable=placement", "--rollout-needs-rules"]).unwrap_err();
    assert!(told.contains("--enable=replica-sets"), "{told}");
}

#[test]
fn argo_cd_has_a_namespace_and_an_account() {
    let of = |flags: &[&str]| parsed(flags).map(|config| config.argocd);
    let argocd = |account: &str| {
        let flag = format!("--argocd-service-account={account}");
        of(&["--enable=argocd", "--argocd-namespace=argocd", &flag])
    };
    let account = |namespace: &str, name: &str| Some((namespace.to_owned(), name.to_owned()));
    let default = of(&["--enable=argocd", "--argocd-namespace=argocd"]).unwrap().map(|argocd| argocd.account);
    assert_eq!(default, account("argocd", "cluster-gateway-argocd"));
    assert_eq!(argocd("deployer").unwrap().map(|argocd| argocd.account), account("argocd", "deployer"));
    assert_eq!(argocd("fleet/deployer").unwrap().map(|argocd| argocd.account), account("fleet", "deployer"));
    for wrong in ["a/b/c", "/b", "a/", ""] {
        assert!(argocd(wrong).unwrap_err().contains("--argocd-service-account="), "{wrong}");
    }
    assert!(of(&["--enable=argocd"]).unwrap_err().contains("--argocd-namespace is required"));
    let stray = of(&["--enable=capi", "--argocd-service-account=deployer"]).unwrap_err();
    assert!(stray.contains("--argocd-service-account has no effect without --enable=argocd"), "{stray}");
    assert!(of(&["--enable=capi", "--argocd-namespace=argocd"]).unwrap_err().contains("--enable=argocd"));
    assert_eq!(of(&["--enable=capi"]).unwrap(), None);
}

#[test]
fn the_last_value_of_a_flag_is_taken_and_lists_add() {
    let config = parsed(&[
        "--enable=capi",
        "--secret-namespace=one",
        "--deny-endpoints=10.0.0.0/8",
        "--allow-insecure",
        "--secret-namespace=other",
        "--deny-endpoints=192.0.2.0/24",
        "--allow-insecure",
        "--enable=kubeconfig",
    ])
    .unwrap();
    assert_eq!(config.secret_namespace, "other");
    assert_eq!(config.sources, [SourceName::Capi, SourceName::Kubeconfig]);
    let denied: Vec<_> = config.rules.endpoints.denied.iter().map(ToString::to_string).collect();
    assert_eq!(denied, ["10.0.0.0/8", "192.0.2.0/24"]);
    assert!(config.rules.allow_insecure);
}
