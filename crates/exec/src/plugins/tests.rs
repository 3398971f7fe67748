//! Whole runs, from configuration to credential or error.

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use kit::wait::{WAIT, eventually, within};
use tokio::task::JoinHandle;

use super::*;
use crate::testing::{config, request, script, with_env};

const TOKEN: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"tok"}}"#;

fn plugins(timeout: Duration) -> Arc<Plugins> {
    Arc::new(Plugins::new(Commands::Any, timeout))
}

async fn run(request: Request) -> Result<Issued, String> {
    let run = plugins(WAIT).issue(&request, Standing::New).await;
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
async fn failures_have_the_go_gateways_words_and_the_plugins_last() {
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
    let error = plugins(limit).issue(&script("echo stuck >&2; sleep 600"), Standing::New).await.unwrap_err();
    assert!(matches!(error, ExecError::Timeout { .. }));
    assert!(error.to_string().starts_with("exec: executable sh did not finish within 300ms and was killed"), "{error}");
}

#[tokio::test]
async fn refused_commands_do_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ran");
    let plugins = Plugins::new(Commands::parse(&["aws".into()], &[]), WAIT);
    let request = script(&format!("touch {}", file.display()));
    let error = plugins.issue(&request, Standing::New).await.unwrap_err();
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
    // bash expands its variable's text, whatever the script is.
    let code = format!("$(touch {})", file.display());
    for (name, allowed) in [("BASH_ENV", false), ("AWS_REGION", true)] {
        let request = request(with_env(config(script, &[]), &[(name, &code)]));
        let run = plugins.issue(&request, Standing::New).await;
        assert_eq!(run.is_ok(), allowed, "{name}");
        assert!(!file.exists(), "{name}");
    }
}

/// A program that reports its start in `started`, and waits until `go` exists. Both are removed on
/// drop.
struct Waiter {
    directory: tempfile::TempDir,
}

impl Waiter {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn request(&self) -> Request {
        let (started, go) = (self.path("started"), self.path("go"));
        script(&format!(
            "echo x >> {}; while ! test -e {}; do sleep 0.05; done; echo '{TOKEN}'",
            started.display(),
            go.display()
        ))
    }

    fn started(&self) -> usize {
        std::fs::read_to_string(self.path("started")).unwrap_or_default().lines().count()
    }

    fn go(&self) {
        std::fs::write(self.path("go"), "").unwrap();
    }

    /// `count` runs of the program, each as a task.
    fn run(&self, plugins: &Arc<Plugins>, standing: Standing, count: usize) -> Vec<JoinHandle<bool>> {
        let request = Arc::new(self.request());
        let run = || {
            let (plugins, request) = (Arc::clone(plugins), Arc::clone(&request));
            tokio::spawn(async move { plugins.run(request, standing).await.is_ok() })
        };
        (0..count).map(|_| run()).collect()
    }
}

fn good() -> Arc<Request> {
    Arc::new(script(&format!("echo '{TOKEN}'")))
}

#[tokio::test]
async fn few_run_at_a_time_and_fewer_that_failed_before() {
    for standing in [Standing::New, Standing::Slow, Standing::Proven, Standing::Suspect] {
        let plugins = Arc::new(Plugins { first_try: WAIT, ..Plugins::new(Commands::Any, WAIT) });
        let (waiter, most) = (Waiter::new(), standing.limit());
        let runs = waiter.run(&plugins, standing, most + 2);
        eventually(WAIT, || waiter.started() == most).await;
        if standing != Standing::Proven {
            // Permits remain for programs that did not fail.
            assert!(plugins.run(good(), Standing::Proven).await.is_ok());
        }
        assert_eq!(waiter.started(), most);
        waiter.go();
        assert!(join_all(runs).await.into_iter().all(|run| run.unwrap()));
        assert_eq!(waiter.started(), most + 2);
    }
}

#[tokio::test]
async fn a_crowd_that_hangs_at_the_start_keeps_no_other_from_its_turn() {
    let first_try = Duration::from_millis(200);
    for standing in [Standing::New, Standing::Proven] {
        let plugins = Arc::new(Plugins { first_try, ..Plugins::new(Commands::Any, WAIT) });
        let waiter = Waiter::new();
        let crowd = waiter.run(&plugins, standing, 3 * MOST_RUNNING);
        eventually(WAIT, || waiter.started() >= MOST_RUNNING - 2).await;
        let run = within(WAIT / 2, "the good one's turn", plugins.run(good(), standing)).await;
        assert!(run.is_ok(), "{standing:?}");
        // No waiting run was given up for it.
        assert!(crowd.iter().all(|run| !run.is_finished()));
        waiter.go();
        assert!(join_all(crowd).await.into_iter().all(|run| run.unwrap()));
    }
}

#[tokio::test]
async fn a_program_that_needs_longer_than_a_first_try_has_its_turn_later() {
    let plugins = Arc::new(Plugins { first_try: Duration::from_millis(200), ..Plugins::new(Commands::Any, WAIT) });
    let waiter = Waiter::new();
    let others = plugins.permits.take_all_long();
    let run = waiter.run(&plugins, Standing::New, 1);
    eventually(WAIT, || waiter.started() == 1).await;
    // The permit for first tries is returned.
    eventually(WAIT, || plugins.permits.get(Standing::New).now_or_never().is_some()).await;
    drop(others);
    eventually(WAIT, || waiter.started() == 2).await;
    waiter.go();
    assert!(run.into_iter().next().unwrap().await.unwrap());
}

#[tokio::test]
async fn waiting_for_a_place_has_an_end() {
    let limit = Duration::from_millis(300);
    let plugins = Arc::new(Plugins { first_try: limit / 2, ..Plugins::new(Commands::Any, limit) });
    let _others = plugins.permits.take_all_long();
    for (standing, was_tried) in [(Standing::Slow, true), (Standing::New, true), (Standing::Suspect, false)] {
        let error = plugins.issue(&script("sleep 600"), standing).await.unwrap_err();
        let ExecError::Busy { limit, slow, .. } = error else { panic!("{standing:?}: {error}") };
        assert_eq!(slow, was_tried, "{standing:?}");
        assert_eq!(limit, if was_tried { Standing::Slow } else { standing }.limit());
    }
}
