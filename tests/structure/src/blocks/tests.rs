use super::*;

fn marks(text: &str) -> Vec<(usize, Option<String>)> {
    blocks(text).into_iter().map(|block| (block.line, block.mark)).collect()
}

fn says(line: usize, mark: &str) -> (usize, Option<String>) {
    (line, Some(mark.to_owned()))
}

#[test]
fn a_mark_is_that_of_the_next_block_alone() {
    let text = "# A\n<!-- not run: a -->\n```sh\na\n```\n<!-- run by: b -->\n\n    b\n\n    c\n\ntext\n\n    d\n\
        <!-- not run: a -->\ntext\n```console\n$ e\n```\n1. f\n\n   <!-- not run: c -->\n\n       g\n";
    let expected = [says(3, "not run: a"), says(8, "run by: b"), (14, None), (17, None), says(24, "not run: c")];
    assert_eq!(marks(text), expected);
}

#[test]
fn a_mark_of_a_section_holds_to_its_end() {
    let text = "# A\n## B\n<!-- section not run: a -->\n\n    b\n### C\n    c\n\n<!-- run by: b -->\n    c\n\n## D\n\n    d\n\
        text\n<!-- section not run: a -->\n\n    e\n";
    // The last one is not below its heading.
    let (below, elsewhere) = ("not run: a", "section not run: a");
    let expected = [says(5, below), says(7, below), says(10, "run by: b"), (14, None), says(18, elsewhere)];
    assert_eq!(marks(text), expected);
}

#[test]
fn only_commands_are_blocks() {
    let text = "```yaml\n    a\n```\n```text\nb\n```\n```\nc\n```\ntext\n    goes on\n";
    assert_eq!(blocks(text), []);
}

fn block(language: Option<&str>, text: &str, mark: Option<&str>) -> Block {
    let owned = |text: &str| text.to_owned();
    Block { line: 1, language: language.map(owned), text: owned(text), mark: mark.map(owned), ..Block::default() }
}

#[test]
fn a_mark_names_a_test_or_gives_a_reason() {
    let said = |mark| block(None, "    a\n", mark).mark().map(|mark| format!("{mark:?}"));
    assert!(said(None).unwrap_err().contains("no mark"));
    assert!(said(Some("not run: no")).unwrap_err().contains("no reason"));
    assert!(said(Some("seen: yes")).unwrap_err().contains("seen: yes"));
    assert!(said(Some("run by: a.rs")).unwrap_err().contains("FILE::FUNCTION"));
    assert_eq!(said(Some("run by: a/b.rs::c")).unwrap(), r#"RunBy { file: "a/b.rs", function: "c" }"#);
    assert_eq!(said(Some("not run: it needs a registry")).unwrap(), r#"NotRun { reason: " it needs a registry" }"#);
}

#[test]
fn a_reason_may_name_files() {
    let reason = "it writes to ~/.kube/config; tests/a/b.rs does it, c.rs there too, and .ci/run (tests/d)";
    assert_eq!(named(reason), ["tests/a/b.rs", "tests/a/c.rs", ".ci/run", "tests/d"]);
    assert!(named("it needs a pod").is_empty());
}

#[test]
fn a_test_reads_the_page_or_has_its_commands() {
    let source = "const A: &str = include_str!(\"../README.md\");\nfn a() { run(\"list -o name\"); }\n";
    let indented = block(None, "    b \\\n      c\n", None);
    assert_eq!(indented.commands(), ["b        c"]);
    assert_eq!(block(None, "    b |\n      c\n    d\n", None).commands(), ["b | c", "d"]);
    assert!(unrun(source, "a", "README.md", &indented).unwrap().contains("nothing quotes"));
    let text = "# A\n## Look\nfirst at it\n## Then\nthat one here\n\n    b\n";
    let below = blocks(text);
    assert_eq!((below[0].heading(), indented.heading()), ("Then", ""));
    for (quote, expected) in [("## Then", true), ("that one here", true), ("## Look", false), ("here", false)] {
        let source = format!("{source} cut(\"\\n{quote}\\n\")");
        assert_eq!(unrun(&source, "a", "README.md", &below[0]).is_none(), expected, "{quote}");
    }
    assert!(unrun(source, "z", "README.md", &indented).unwrap().contains("no test z"));
    assert!(unrun(source, "a", "cli.md", &indented).unwrap().contains("cli.md"));
    let screen = |command: &str| block(Some("console"), &format!("$ kubectl clusters {command}\nberlin\n"), None);
    assert_eq!(unrun(source, "a", "cli.md", &screen("list -o name")), None);
    assert!(unrun(source, "a", "README.md", &screen("list")).unwrap().contains("list"));
    assert!(unrun(source, "a", "cli.md", &block(Some("console"), "berlin\n", None)).is_some());
}
