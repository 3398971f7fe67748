//! Which commands are found and which are allowed.

use super::*;
use crate::testing::{config, with_env};

fn listed(list: &[&str]) -> Commands {
    with_variables(list, &[])
}

fn with_variables(commands: &[&str], variables: &[&str]) -> Commands {
    let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    Commands::parse(&strings(commands), &strings(variables))
}

#[test]
fn lists() {
    assert_eq!(listed(&["*"]), Commands::Any);
    assert_eq!(listed(&["aws", " * "]), Commands::Any);
    let list = |commands: &[&str], variables: &[&str]| Commands::Listed {
        commands: commands.iter().map(ToString::to_string).collect(),
        variables: variables.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(listed(&[""]), list(&[], &[]));
    assert_eq!(listed(&["aws", "", " /opt/x "]), list(&["aws", "/opt/x"], &[]));
    assert_eq!(with_variables(&["aws"], &["", " AWS_REGION "]), list(&["aws"], &["AWS_REGION"]));
}

#[test]
fn only_listed_commands_are_allowed() {
    let sh = locate(&config("sh", &[])).unwrap();
    let sh = sh.to_str().unwrap();
    for (list, command, allowed) in [
        (&["*"][..], "anything", true),
        (&[], "sh", false),
        (&["sh"], "sh", true),
        (&["sh"], sh, false), // a name is not any file of that name
        (&[sh], sh, true),
        (&[sh], "sh", true),
        (&["/elsewhere/sh"], "sh", false),
        (&["sh"], "bash", false),
        (&["sh"], "./sh", false),
    ] {
        let outcome = listed(list).check(&config(command, &[]));
        assert_eq!(outcome.is_ok(), allowed, "{list:?} {command}: {outcome:?}");
    }
    let refused = listed(&["aws"]).check(&config("sh", &["-c", "canary"])).unwrap_err().to_string();
    assert!(refused.contains("exec: executable sh is not allowed") && refused.contains("--exec-commands"), "{refused}");
    assert!(!refused.contains("canary"));
}

#[test]
fn the_environment_is_no_way_around_the_list() {
    let commands = with_variables(&["sh"], &["AWS_PROFILE", "AWS_REGION"]);
    let dangerous = [
        "LD_PRELOAD",
        "PATH",
        "ENV",
        "BASH_ENV",
        "PYTHONPATH",
        "PYTHONWARNINGS",
        "PERL5OPT",
        "RUBYOPT",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "GCONV_PATH",
        "AWS_CONFIG_FILE",
        "aws_region",
        "AWS_REGION ",
        "",
    ];
    for name in dangerous {
        let config = with_env(config("sh", &[]), &[("AWS_REGION", "1"), (name, "canary")]);
        let error = commands.check(&config).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("--exec-env") && !error.contains("canary"), "{error}");
        assert!(Commands::Any.check(&config).is_ok(), "{name}");
    }
    let harmless = with_env(config("sh", &[]), &[("AWS_REGION", "1"), ("AWS_PROFILE", "2")]);
    assert!(commands.check(&harmless).is_ok() && listed(&["sh"]).check(&harmless).is_err());
}

#[test]
fn commands_are_found_by_path_or_name() {
    assert!(locate(&config("sh", &[])).unwrap().is_absolute());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plugin");
    std::fs::write(&file, "").unwrap();
    let absolute = config(file.to_str().unwrap(), &[]);
    assert!(matches!(locate(&absolute), Err(ExecError::NotFound { .. })), "not executable");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(locate(&absolute).unwrap(), file);
    let directory = config(directory.path().to_str().unwrap(), &[]);
    assert!(matches!(locate(&directory), Err(ExecError::NotFound { .. })));
}

#[test]
fn a_missing_command_comes_with_the_hint() {
    let missing = ExecConfig { install_hint: Some("get it there".into()), ..config("no-such-plugin", &[]) };
    let error = locate(&missing).unwrap_err().to_string();
    assert_eq!(error, "exec: executable no-such-plugin not found: get it there");
    let error = locate(&config("no-such-plugin", &[])).unwrap_err().to_string();
    assert_eq!(error, "exec: executable no-such-plugin not found");
    let error = locate(&config("./plugin", &[])).unwrap_err().to_string();
    assert!(error.contains("./plugin is a relative path"), "{error}");
}

#[test]
fn the_working_directory_is_never_searched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("plugin");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let relative = seen_from_here(directory.path());
    assert!(relative.join("plugin").exists());
    assert_eq!(find("plugin", relative.as_os_str()), None);
    assert_eq!(find("plugin", directory.path().as_os_str()), Some(file));
}

/// `path` as seen from the working directory.
fn seen_from_here(path: &Path) -> PathBuf {
    let up = env::current_dir().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
    up.join(path.strip_prefix("/").unwrap())
}
