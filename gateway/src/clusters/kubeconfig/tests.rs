use super::*;

#[test]
fn a_credential_in_the_place_of_a_file_name_is_not_repeated() {
    for (user, field) in [
        ("tokenFile: c2VjcmV0", "tokenFile"),
        ("client-certificate: c2VjcmV0, client-key-data: aw==", "client-certificate"),
        ("client-certificate-data: Yw==, client-key: c2VjcmV0", "client-key"),
    ] {
        let text = format!(
            "clusters: [{{name: a, cluster: {{server: 'https://m', insecure-skip-tls-verify: true}}}}]\n\
             users: [{{name: a, user: {{{user}}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]"
        );
        let read = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
        let why = secret(&read, "a").expect_err("no such file");
        assert_eq!(why, format!("cannot read the file that its {field} names: no such file or directory"));
    }
}
