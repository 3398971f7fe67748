//! What only a terminal shows: questions, colours, progress. And how kubectl and shells find the
//! program.

mod browser;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::kubectl::{Invocation, Kubectl, Output};
use hub_tests::ports;
use hub_tests::testbed::{CLUSTER, Testbed};
use libtest_mimic::Trial;

use crate::fixture::{Fixture, clusters, ended, joining, member, script, test};

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "terminal::rights and removals are asked for", asked),
        test(fixture, "terminal::colours and progress are for terminals", shown),
        test(fixture, "terminal::the page opens in the browser, which learns of it by nobody's words", browser::opened),
        test(fixture, "terminal::progress is as the page shows it", progress),
        test(fixture, "terminal::kubectl finds it as a plugin, and shells complete it", found),
    ]
}

/// What a person at a terminal sees when typing `answer`.
fn at_terminal(program: &Kubectl, line: &str, answer: &str) -> Result<Output> {
    terminal(program, &format!("{} {line}", program.binary.display())).stdin(answer).run()
}

/// Runs a shell command in a terminal that script(1) of util-linux provides.
fn terminal(program: &Kubectl, command: &str) -> Invocation {
    let script = Kubectl { binary: "script".into(), ..program.clone() };
    script.args(["-qec", command, "/dev/null"])
}

fn asked(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let (member, joining) = (member(testbed), joining(testbed));
    let joined = at_terminal(&program, &format!("join espoo {joining} --account-namespace cli-espoo"), "view\n")?;
    let told = &joined.stdout;
    ensure!(
        joined.status == 0 && told.contains("Rights of the gateway's callers") && told.contains("espoo joined"),
        "{joined:?}"
    );
    let kept = at_terminal(&program, &format!("detach espoo {member}"), "n\n")?;
    ensure!(kept.status == 1 && kept.stdout.contains("nothing was removed"), "{kept:?}");
    ended(&program, "get pods espoo", 0)?;
    let gone = at_terminal(&program, &format!("detach espoo {member}"), "y\n")?;
    ensure!(gone.status == 0 && gone.stdout.contains("cluster espoo detached"), "{gone:?}");
    Ok(())
}

const PAGE: &str = include_str!("../../../docs/cli.md");

/// The progress line on the page is like a real one.
fn progress(testbed: &Testbed) -> Result<()> {
    let command = "get pods --all    # while it asks";
    let (_, rest) = PAGE.split_once(&format!("$ kubectl clusters {command}\n")).context("no such block")?;
    let documented = rest.lines().next().context("an empty block")?;
    let dead = format!("https://127.0.0.1:{}", ports::free()?);
    let member = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member("terminal-dead", &member.at(&dead))?;
    let seen = at_terminal(&clusters(testbed), &format!("get pods {CLUSTER},terminal-dead"), "")?.stdout;
    let shape = |line: &str| line.split(char::is_numeric).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("#");
    let lines: Vec<_> = seen.split("\r\x1b[K").map(str::trim).collect();
    ensure!(lines.iter().any(|line| shape(line) == shape(documented)), "{documented}: {lines:?}");
    // The line is cleared when there is something to show.
    ensure!(seen.contains("\r\x1b[Kerror: ") || seen.contains("\r\x1b[KCLUSTER"), "{seen:?}");
    testbed.hub.forget_member("terminal-dead")
}

fn shown(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let seen = at_terminal(&program, &format!("probe {CLUSTER}"), "")?.stdout;
    ensure!(seen.contains("\x1b[32m✓\x1b[0m hub"), "{seen:?}");
    // There are no colours with `NO_COLOR` (https://no-color.org), and none in a pipe, whatever is
    // behind it.
    let command = format!("{} probe {CLUSTER}", program.binary.display());
    for (coloured, value) in [(false, "1"), (true, "")] {
        let seen = terminal(&program, &command).env("NO_COLOR", value).run()?.success()?;
        ensure!(
            seen.contains("\x1b[32m✓\x1b[0m hub") == coloured && seen.contains("✓"),
            "NO_COLOR={value:?}: {seen:?}"
        );
    }
    let piped = terminal(&program, &format!("{command} | cat")).run()?.success()?;
    ensure!(piped.contains("✓ hub") && !piped.contains("\x1b["), "{piped:?}");
    let seen = at_terminal(&program, &format!("get namespaces {CLUSTER}"), "")?.stdout;
    ensure!(seen.contains("1/1 clusters asked") && seen.contains("\r\x1b[K"), "{seen:?}");
    for (line, words) in [("exec-each", "1/1 clusters done"), ("check", "1/1 clusters checked")] {
        let command = if line == "check" { "" } else { " -- true" };
        let seen = at_terminal(&program, &format!("{line} {CLUSTER}{command}"), "")?.stdout;
        ensure!(seen.contains(words) && seen.contains("\r\x1b[K"), "{line}: {seen:?}");
    }
    // Results go where they are redirected to. Progress stays on the terminal.
    let file = testbed.launcher().file("cli-namespaces.out");
    let command = format!("{} get namespaces {CLUSTER} >{}", program.binary.display(), file.display());
    let seen = terminal(&program, &command).run()?.success()?;
    ensure!(seen.contains("1/1 clusters asked") && !seen.contains("kube-system"), "{seen:?}");
    let written = std::fs::read_to_string(&file)?;
    ensure!(written.contains("kube-system") && !written.contains("asked"), "{written:?}");
    ensure!(!written.contains(['\r', '\x1b']), "{written:?}");
    for line in [format!("probe {CLUSTER}"), format!("get namespaces {CLUSTER}")] {
        let plain = ended(&program, &line, 0)?;
        ensure!(!format!("{plain:?}").contains("\\u{1b}") && plain.stderr.is_empty(), "{plain:?}");
    }
    Ok(())
}

/// Completes through kubectl, as shells ask it.
fn completed(testbed: &Testbed, kubectl: &Kubectl, path: &str) -> Result<()> {
    let directory = testbed.directory("cli-completion")?;
    let file = directory.join("kubectl_complete-clusters");
    script(&file, &ended(&clusters(testbed), "completion kubectl", 0)?.stdout)?;
    let path = format!("{}:{path}:/usr/bin:/bin", directory.display());
    let offered = |line: &[&str]| -> Result<Vec<String>> {
        let words = ["__complete", "clusters"].iter().chain(line);
        let offered = kubectl.args(words).env("PATH", &path).run()?.success()?;
        Ok(offered.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect())
    };
    ensure!(offered(&["ro"])? == ["rotate", ":4"], "{:?}", offered(&["ro"]));
    let named = offered(&["get", "pods", "member"])?;
    ensure!(named.contains(&CLUSTER.to_owned()) && named.last().is_some_and(|last| last == ":4"), "{named:?}");
    ensure!(offered(&["probe", "no-such"])? == [":4"], "{:?}", offered(&["probe", "no-such"]));
    // When the hub cannot be reached, no message appears in the line that is being typed.
    let lost = offered(&["--context", "gone", "probe", "m"])?;
    ensure!(lost == [":4"], "{lost:?}");
    Ok(())
}

fn found(testbed: &Testbed) -> Result<()> {
    let program = clusters(testbed);
    let kubectl = testbed.hub.server.kubectl();
    let path = program.binary.parent().and_then(Path::to_str).context("a directory")?;
    let listed = kubectl.args(["clusters", "list", "--no-probe", "-o", "name"]).env("PATH", path).run()?.success()?;
    ensure!(listed.lines().any(|name| name == CLUSTER), "{listed}");
    completed(testbed, &kubectl, path)?;
    let script = ended(&program, "completion bash", 0)?.stdout;
    let file = testbed.launcher().file("cli-completion.bash");
    std::fs::write(&file, &script)?;
    // What a shell offers for `kubectl-clusters ro`.
    let words = r#"source "$0"; function=$(complete -p kubectl-clusters); function=${function#*-F }
        COMP_WORDS=(kubectl-clusters ro); COMP_CWORD=1
        ${function%% *} kubectl-clusters ro kubectl-clusters; echo "${COMPREPLY[@]}""#;
    let offered = Command::new("bash").args(["-c", words]).arg(&file).output()?;
    ensure!(String::from_utf8_lossy(&offered.stdout).trim() == "rotate", "{offered:?}");
    // Not loaded, because these shells are not installed here.
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = ended(&program, &format!("completion {shell}"), 0)?.stdout;
        ensure!(script.contains("kubectl-clusters") && script.contains("rotate"), "{shell}: {script}");
    }
    Ok(())
}
