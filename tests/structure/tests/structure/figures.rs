//! Figures on pages are those that were measured, and quoted messages are those of the programs.

use std::fs;
use std::path::Path;

use structure_tests::figures::{is_said, linked, literals, quoted, section, unfounded, units, unlisted};
use structure_tests::manifests::packages;
use structure_tests::modules::trees;
use structure_tests::widths::files;
use structure_tests::workspace;

const PERFORMANCE: &str = "docs/performance.md";
/// Sections of the README about advantages of this gateway.
const LISTS: [&str; 2] = ["why-this-one", "comparison"];
/// Test tools whose versions the README names.
const KUBECTLS: [&str; 2] = ["kubernetes", "kubectl-oldest"];

/// Sources of the gateway's own error messages, and of the causes in them.
const ERRORS: [&str; 21] = [
    "crates/auth/src/review.rs",
    "crates/exec/src/error.rs",
    "gateway/src/clusters.rs",
    "gateway/src/clusters/dynamic.rs",
    "gateway/src/error.rs",
    "gateway/src/error/failure.rs",
    "gateway/src/error/hub.rs",
    "gateway/src/every/ask.rs",
    "gateway/src/headers/size.rs",
    "gateway/src/limits/heavy.rs",
    "gateway/src/limits/too_many.rs",
    "gateway/src/request/framing.rs",
    "gateway/src/request/upgrade.rs",
    "gateway/src/request_body.rs",
    "gateway/src/tunnel/error.rs",
    "gateway/src/tunnel/error/missing.rs",
    "gateway/src/tunnel/link.rs",
    "gateway/src/upstream/circuit.rs",
    "gateway/src/upstream/connect/error.rs",
    "gateway/src/upstream/error.rs",
    "gateway/src/upstream/shed.rs",
];
/// What causes begin with that have rows of their own.
const BEFORE_CAUSES: &str = "dial tcp #: ";
/// How tables of messages begin, and the column of the messages.
const TABLES: [(&str, usize); 3] =
    [("| code | message contains", 1), ("| message contains | reason", 0), ("| message contains | meaning", 0)];
/// Start of messages that need no row, and the reason.
const WITHOUT_ROW: [(&str, &str); 34] = [
    ("the request has #", "what it has too much of has a row"),
    ("the request for # has #", "the same"),
    ("its head has #", "the same, of the member's response"),
    ("its trailers have #", "the same, of trailers"),
    ("send fewer or shorter headers", "the end of the same"),
    ("leave the header out", "the same"),
    ("send a shorter one", "the same"),
    ("data key", "the end of `its Secret cannot be used`, whose row says that the text names the key"),
    ("# is unreachable: #", "why it is has a row: `dial tcp`"),
    ("request to #: #", "the client has gone and reads nothing"),
    ("the client disconnected", "the same"),
    ("nothing is served under this path", "for the log; the caller reads the API server's words"),
    ("the method is not served", "the same"),
    ("no media type of the response", "the same"),
    ("no such object #", "the same"),
    ("no such server: #", "the registration of Karmada's API server never ends"),
    ("the cluster is no longer registered", "the caller reads `no such cluster`"),
    ("each is asked for by itself", "for readers of the code"),
    ("the next attempt is in", "the end of `attempts to connect failed`"),
    ("watches, followed logs and upgrades", "the middle of `in flight for`"),
    ("all ServiceAccounts of namespace #", "the same"),
    ("of one user", "the middle of `in flight (limit`"),
    ("of one namespace's ServiceAccounts", "the same"),
    ("the one tunnel-server that could be asked", "the end of `of the cluster is linked to`"),
    ("any of the # tunnel-servers", "the same"),
    (": check that the tunnel-agent runs", "the same"),
    ("check the tunnel-server's log", "the end of `no answer in time`"),
    ("check --proxy-host", "the end of `cannot reach any tunnel-server`"),
    ("tunnel-server #: no answer", "the middle of the same"),
    ("the tunnel-# refused: #", "the server's or the agent's own words follow"),
    ("no tunnel-server is reached", "for `health`, which has few words"),
    ("no tunnel-agent is linked", "the same"),
    ("the tunnel-agent cannot connect", "the same"),
    ("no credential will be issued", "for the log"),
];

/// The messages of the tables of errors.
fn messages() -> Vec<String> {
    let page = read("docs/operations.md");
    let of = |(head, column): (&str, usize)| {
        let messages = quoted(&page, head, column);
        assert!(messages.len() > 5, "{head}: {messages:?}");
        messages
    };
    TABLES.into_iter().flat_map(of).collect()
}

fn read(page: &str) -> String {
    read_path(&workspace().join(page))
}

fn read_path(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Literals of the programs and libraries in these folders, without their tests.
fn said(folders: &[&str]) -> String {
    let root = workspace();
    let is_in = |directory: &Path| folders.iter().any(|folder| directory.starts_with(folder));
    let packages = packages(&root).into_iter().filter(|package| is_in(&package.directory));
    let trees = packages.flat_map(|package| trees(&root, &package.directory));
    trees.flat_map(|tree| tree.files).map(|file| literals(&read_path(&root.join(file)))).collect()
}

/// The versions of kubectl that tests run, in the form of the pages.
fn kubectls() -> String {
    let minor = |tool: &str| {
        let module = read(&format!("tests/hub/tools/{tool}/go.mod"));
        let version = module.split_once("k8s.io/kubernetes v").and_then(|(_, rest)| rest.split_whitespace().next());
        let minor = version.and_then(|version| version.rsplit_once('.')).expect("a version of Kubernetes").0;
        minor.to_owned()
    };
    KUBECTLS.map(minor).join("\n")
}

/// A figure without a link to its measurement is a version.
#[test]
fn the_readmes_figures_stand_where_they_link() {
    let (readme, performance, versions) = (read("README.md"), read(PERFORMANCE), kubectls());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for unit in LISTS.iter().flat_map(|list| units(&section(&readme, list))) {
        let (anchors, prose) = linked(&unit, PERFORMANCE);
        let sections: Vec<_> = anchors.iter().map(|anchor| section(&performance, anchor)).collect();
        let measured = if anchors.is_empty() { versions.clone() } else { sections.join("\n") };
        count += usize::from(!anchors.is_empty());
        let unfounded = unfounded(&prose, &measured);
        wrong.extend((!unfounded.is_empty()).then(|| format!("{unfounded:?} in none of {anchors:?}: {unit}")));
    }
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n"));
    assert!(count >= 6, "{count} bullets and rows have figures");
}

#[test]
fn the_messages_of_the_errors_tables_are_the_programs_own() {
    let said = said(&["gateway", "crates", "tunnel-server", "tunnel-agent"]);
    let messages = messages();
    let unsaid: Vec<_> = messages.iter().filter(|message| !is_said(&said, message)).collect();
    assert!(unsaid.is_empty(), "no program says {unsaid:?}");
    assert!(messages.len() > 30, "{messages:?}");
}

#[test]
fn each_error_of_the_gateway_has_a_row() {
    let said: String = ERRORS.iter().map(|file| literals(&read(file)).replace(BEFORE_CAUSES, "")).collect();
    let messages = messages();
    let others = WITHOUT_ROW.map(|(begin, _)| begin);
    let unlisted = unlisted(&said, &messages, &others);
    assert!(unlisted.is_empty(), "no row of the errors table, and no reason for that here: {unlisted:#?}");
    let gone: Vec<_> = others.iter().filter(|other| !said.lines().any(|line| line.starts_with(*other))).collect();
    assert!(gone.is_empty(), "nothing says {gone:?} any more");
    assert!(said.lines().count() > 40, "{said}");
}

/// Where tests run the commands there are no pods, and so no logs to look through.
#[test]
fn what_pages_look_for_in_logs_is_what_programs_log() {
    let said = said(&["gateway", "crates", "tunnel-server", "tunnel-agent", "controllers"]);
    let pages: String = files(&workspace().join("docs"), &["md"]).iter().map(|page| read_path(page)).collect();
    let wanted: Vec<_> = pages
        .lines()
        .filter(|line| line.contains(" logs "))
        .flat_map(|line| line.split(" grep '").skip(1).filter_map(|rest| rest.split_once('\'')))
        .map(|(wanted, _)| wanted)
        .collect();
    let unsaid: Vec<_> = wanted.iter().filter(|wanted| !is_said(&said, wanted)).collect();
    assert!(unsaid.is_empty(), "no program logs {unsaid:?}");
    assert!(wanted.len() >= 7, "{wanted:?}");
}
