use clap::Parser;

use super::*;

/// A certificate of nobody: nothing reads the content between its lines.
const CA: &str = include_str!("golden/ca.crt");
const HUB: &str = r#"
clusters: [{name: h, cluster: {server: "https://hub:6443/base/", certificate-authority-data: CA,
    tls-server-name: hub.example, proxy-url: "http://proxy:3128"}}]
users: [{name: jane, user: {token: c4n4ry}}, {name: other, user: {token: c4n4ry}}]
contexts: [{name: c, context: {cluster: h, user: jane}}, {name: gone, context: {cluster: h, user: gone}}]
current-context: c
"#;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    contexts: Contexts,
}

/// A hub's kubeconfig and a CA, in a directory of their own.
struct Files(tempfile::TempDir);

// === impl Files ===

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        std::fs::write(files.path("ca.crt"), CA).unwrap();
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, CA);
        std::fs::write(files.path("hub.yaml"), HUB.replace("CA", &encoded)).unwrap();
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// The printed text; files are below `DIR`.
    fn printed(&self, line: &str) -> Result<String, String> {
        let directory = self.0.path().display().to_string();
        let hub = format!("kubeconfig --kubeconfig={directory}/hub.yaml {}", line.replace("DIR", &directory));
        let line = Line::try_parse_from(hub.split(' ')).map_err(|error| error.to_string())?;
        let text = line.contexts.text().map_err(|error| format!("{error:#}"))?;
        Ok(text.replace(&directory, "DIR"))
    }
}

const GATEWAY: &str = "--token-file=/run/token --gateway-url=https://gateway:9443/ --gateway-ca-file=DIR/ca.crt";

#[test]
fn golden() {
    let files = Files::new();
    let native = files.printed("berlin root.org.ws --token-file=/run/token").unwrap();
    assert_eq!(native, include_str!("golden/native.yaml"));
    for (dialect, golden) in [
        ("karmada", include_str!("golden/karmada.yaml")),
        ("kcp", include_str!("golden/kcp.yaml")),
        ("ocm-user-server", include_str!("golden/ocm-user-server.yaml")),
    ] {
        let printed = files.printed(&format!("root.org.ws --dialect={dialect} {GATEWAY}")).unwrap();
        assert_eq!(printed, golden, "{dialect}");
    }
    let named = files.printed("berlin --user-from=DIR/hub.yaml").unwrap();
    assert_eq!(named, include_str!("golden/user.yaml"));
}

#[test]
fn what_is_printed_is_a_kubeconfig_without_a_credential() {
    let files = Files::new();
    for line in ["berlin --user-from=DIR/hub.yaml", "berlin --token-file=/run/token"] {
        let printed = files.printed(line).unwrap();
        assert!(!printed.contains("c4n4ry"), "{printed}");
        let read = Kubeconfig::from_yaml(&printed).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("berlin"));
    }
    let several = Kubeconfig::from_yaml(&files.printed("a b --token-file=/run/token").unwrap()).unwrap();
    assert_eq!((several.contexts.len(), several.current_context.unwrap_or_default().as_str()), (2, ""));
}

#[test]
fn a_mistake_is_told_with_its_flag_and_the_way_out() {
    let files = Files::new();
    let long = "a".repeat(64);
    for (line, told) in [
        ("--token-file=/run/token", "name them, or choose them with --all or -l"),
        ("berlin", "--token-file=FILE"),
        ("berlin --token-file=a --user-from=b", "cannot be used with"),
        ("berlin --all --token-file=a", "cannot be used with"),
        ("berlin --user-from=DIR/none", "--user-from=DIR/none: "),
        ("Berlin --token-file=a", "\"Berlin\": a cluster name must be"),
        ("berlin --dialect=kcp --token-file=a", "--dialect=kcp requires --gateway-url"),
        ("berlin --dialect=ocm-user-server --token-file=a", "--dialect=ocm-user-server requires --gateway-url"),
        ("berlin --token-file=a --gateway-url=http://gateway", "--gateway-url: "),
        ("berlin --token-file=a --gateway-ca-file=b", "--gateway-url"),
        ("berlin --token-file=a --gateway-url=https://g --gateway-ca-file=DIR/none", "DIR/none"),
        ("berlin --dialect=kcp --token-file=a --gateway-url=https://g/clusters/", "must not contain /clusters/"),
        (&format!("{long} --dialect=kcp {GATEWAY}"), "has no path in the dialect kcp"),
    ] {
        let why = files.printed(line).expect_err(line);
        let told = told.replace("DIR", &files.0.path().display().to_string());
        assert!(why.contains(&told) && !why.contains("c4n4ry"), "{line}: {why}");
    }
    std::fs::write(files.path("gone.yaml"), HUB.replace("current-context: c", "current-context: gone")).unwrap();
    let why = files.printed("berlin --user-from=DIR/gone.yaml").unwrap_err();
    assert!(why.contains("\"gone\" has no user"), "{why}");
}
