//! The memory that the charts give each program, and the bytes that it may hold by default: held
//! bytes take up to 2.8 times as much memory.

use std::fs;

use structure_tests::workspace;

/// A chart's values, the path of the memory limit in them, and the file of the flag's default;
/// without a file, the program takes its share of the memory that it is given.
const PROGRAMS: &[(&str, &[&str], Option<&str>)] = &[
    ("charts/cluster-gateway/values.yaml", &["resources", "limits", "memory"], None),
    (
        "charts/cluster-gateway/values.yaml",
        &["tunnel", "server", "resources", "limits", "memory"],
        Some("tunnel-server/src/args.rs"),
    ),
    ("charts/tunnel-agent/values.yaml", &["resources", "limits", "memory"], Some("tunnel-agent/src/args.rs")),
];
/// The file of the gateway's share.
const SHARE: &str = "gateway/src/args/limits.rs";
/// The file with the memory of the gateway under attack.
const ATTACKED: &str = "gateway/tests/memory/main.rs";

fn text(file: &str) -> String {
    fs::read_to_string(workspace().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The scalar at `path`, by how far lines are indented.
fn value(yaml: &str, path: &[&str]) -> Option<String> {
    let mut keys: Vec<(usize, &str)> = Vec::new();
    for line in yaml.lines().filter(|line| !line.trim_start().starts_with(['#', '-'])) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let indent = key.len() - key.trim_start().len();
        keys.retain(|(outer, _)| *outer < indent);
        keys.push((indent, key.trim_start()));
        if keys.iter().map(|(_, key)| *key).eq(path.iter().copied()) {
            return Some(value.trim().to_owned());
        }
    }
    None
}

fn bytes(quantity: &str) -> u64 {
    let (number, unit) = quantity.split_at(quantity.len() - 2);
    let unit = match unit {
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => panic!("{quantity}"),
    };
    number.parse::<u64>().unwrap_or_else(|_| panic!("{quantity}")) * unit
}

/// The text between two others.
fn between(text: &str, before: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found.to_owned())
}

#[test]
fn what_a_program_may_hold_fits_into_the_memory_that_its_chart_gives_it() {
    let share = between(&text(SHARE), "const SHARE: u64 = ", ";").expect("a share");
    let share: u64 = share.parse().expect("a number");
    for (values, path, flag) in PROGRAMS {
        let limit = bytes(&value(&text(values), path).unwrap_or_else(|| panic!("{values} has no {path:?}")));
        let Some(flag) = flag else { continue };
        let args = text(flag);
        let (before, _) = args.split_once("pub max_held_bytes").expect("the flag");
        let default = before.rsplit("default_value = \"").next().and_then(|rest| rest.split('"').next());
        let held = bytes(default.expect("a default"));
        assert!(held * share <= limit, "{flag}: {held} bytes of the {limit} of {values}");
        let told = format!("{} MiB", held >> 20);
        assert!(text("docs/operations.md").contains(&told), "docs/operations.md does not say {told}");
    }
}

#[test]
fn the_gateway_is_attacked_with_no_more_memory_than_its_chart_gives_it() {
    let limit = value(&text("charts/cluster-gateway/values.yaml"), &["resources", "limits", "memory"]);
    let attacked = between(&text(ATTACKED), "const MEMORY: u64 = ", " << 20;").expect("what it is attacked with");
    let attacked = attacked.parse::<u64>().expect("a number") << 20;
    assert!(attacked <= bytes(&limit.expect("a limit")), "{attacked} bytes");
}
