//! Whole runs, from configuration to credential or error.

use futures_util::future::join_all;
use kit::wait::{WAIT, eventually};

use super::*;
use crate::testing::{config, request, script, with_env};

const TOKEN: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"tok"}}"#;

fn plugins(timeout: Duration) -> Arc<Plugins> {
    Arc::new(Plugins::new(Commands::Any, timeout))
}

async fn run(request: Request) -> Result<Issued, String> {
    let run = plugins(WAIT).issue(&request, Standing::Good).await;
    run.map_err(|error| error.to_string())
}

fn token(issued: &Issued) -> &str {
    issued.credential().token.as_ref().unwrap().expose_secret()
}

#[tokio::test]
async fn a_plugin_issues_a_token() {
    assert_eq!(token(&run(script(&format!("echo '{TOKEN}'"))).await.unwrap()), "tok");
}

#[tokio::test]
async fn a_plugin_sees_its_environment_and_what_is_asked() {
    let answer = r#"test "$REGION" = eu-1 || exit 2
        case "$KUBERNETES_EXEC_INFO" in *client.authentication.k8s.io/v1\"*interactive\":false*) ;; *) exit 3;; esac
        test -n "$PATH" || exit 4
        printf '{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$REGION""#;
    let request = request(with_env(config("sh", &["-c", answer]), &[("REGION", "eu-1"), (INFO, "forged")]));
    assert_eq!(token(&run(request).await.unwrap()), "eu-1");
}

#[tokio::test]
async fn failures_have_the_incumbents_words_and_the_plugins_last() {
    for (request, expected) in [
        (script("exit 7"), "exec: executable sh failed with exit code 7"),
        (script("echo no such profile >&2; exit 1"), "exec: executable sh failed with exit code 1: no such profile"),
        (script("kill -9 $$"), "exec: executable sh was ended by signal 9"),
        (request(config("no-such-plugin", &[])), "exec: executable no-such-plugin not found"),
        (script("echo nonsense"), "decoding stdout: no JSON object of kind ExecCredential (line 1, column 2)"),
        (script("true"), "decoding stdout: no JSON object of kind ExecCredential (line 1, column 0)"),
    ] {
        assert_eq!(run(request).await.unwrap_err(), expected);
    }
}

#[tokio::test]
async fn a_failing_plugin_does_not_give_its_secrets_away() {
    let failing = config("sh", &["-c", "echo \"bad $PASSWORD\" >&2; echo \"$PASSWORD\"; exit 1"]);
    let error = run(request(with_env(failing, &[("PASSWORD", "planted-canary")]))).await.unwrap_err();
    assert_eq!(error, "exec: executable sh failed with exit code 1: bad ***");
}

#[tokio::test]
async fn a_plugin_that_hangs_is_ended() {
    let limit = Duration::from_millis(300);
    let error = plugins(limit).issue(&script("echo stuck >&2; sleep 600"), Standing::Good).await.unwrap_err();
    assert!(matches!(error, ExecError::Timeout { .. }));
    assert!(error.to_string().starts_with("exec: executable sh did not finish within 300ms and was killed"), "{error}");
}

#[tokio::test]
async fn refused_commands_do_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ran");
    let plugins = Plugins::new(Commands::parse(&["aws".into()], &[]), WAIT);
    let request = script(&format!("touch {}", file.display()));
    let error = plugins.issue(&request, Standing::Good).await.unwrap_err();
    assert!(matches!(error, ExecError::NotAllowed { .. }));
    assert!(!file.exists());
}

#[tokio::test]
async fn an_allowed_script_runs_no_code_of_its_environment() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let (script, file) = (directory.path().join("plugin"), directory.path().join("ran"));
    std::fs::write(&script, format!("#!/bin/bash\necho '{TOKEN}'\n")).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let plugins = Plugins::new(Commands::parse(&[script.into()], &["AWS_REGION".into()]), WAIT);
    // bash expands what its variable says, whatever the script is.
    let code = format!("$(touch {})", file.display());
    for (name, allowed) in [("BASH_ENV", false), ("AWS_REGION", true)] {
        let request = request(with_env(config(script, &[]), &[(name, &code)]));
        let run = plugins.issue(&request, Standing::Good).await;
        assert_eq!(run.is_ok(), allowed, "{name}");
        assert!(!file.exists(), "{name}");
    }
}

#[tokio::test]
async fn few_run_at_a_time_and_fewer_that_failed_before() {
    for (standing, most) in [(Standing::Good, MOST_RUNNING), (Standing::Suspect, MOST_SUSPECT)] {
        let directory = tempfile::tempdir().unwrap();
        let (started, go) = (directory.path().join("started"), directory.path().join("go"));
        // Each says that it runs, then waits to be let go.
        let body = format!(
            "echo x >> {}; while ! test -e {}; do sleep 0.05; done; echo '{TOKEN}'",
            started.display(),
            go.display()
        );
        let (plugins, request) = (plugins(WAIT), Arc::new(script(&body)));
        let runs: Vec<_> = (0..most + 2)
            .map(|_| {
                let (plugins, request) = (plugins.clone(), request.clone());
                tokio::spawn(async move { plugins.run(request, standing).await.map(drop) })
            })
            .collect();
        let running = || std::fs::read_to_string(&started).unwrap_or_default().lines().count();
        eventually(WAIT, || running() == most).await;
        if standing == Standing::Suspect {
            // Room is left for those that did not fail.
            let good = plugins.run(Arc::new(script(&format!("echo '{TOKEN}'"))), Standing::Good).await;
            assert!(good.is_ok());
        }
        assert_eq!(running(), most);
        std::fs::write(&go, "").unwrap();
        assert!(join_all(runs).await.into_iter().all(|run| run.unwrap().is_ok()));
        assert_eq!(running(), most + 2);
    }
}

#[tokio::test]
async fn waiting_for_a_place_has_an_end() {
    let plugins = plugins(Duration::from_millis(200));
    let _all = plugins.places.acquire_many(u32::try_from(MOST_RUNNING).unwrap()).await.unwrap();
    let error = plugins.issue(&script("true"), Standing::Good).await.unwrap_err();
    assert!(matches!(error, ExecError::Busy { limit: MOST_RUNNING, .. }), "{error}");
}
