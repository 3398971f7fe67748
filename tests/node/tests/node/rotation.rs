//! An agent's token, renewed and revoked step by step as the page says, by somebody who installed
//! the agent with helm.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::page::{commands, section};
use hub_tests::wait;
use node_tests::operator::Operator;
use node_tests::testbed::Testbed;

use crate::pods::settled;
use crate::readme;

const PAGE: &str = include_str!("../../../../docs/operations.md");
/// Where the page has agents' tokens.
const SECTION: [&str; 2] = ["### Rotating an agent's token\n", "### Inspecting links and streams\n"];
/// The step that makes a token, and the block that gives a token to agents whose Secret is theirs.
const CREATE: [&str; 2] = ["1. Create a temporary token:\n", "2. On the member"];
const OWN: [&str; 2] = ["#### The token in your own Secret\n", "(All users"];
/// The Secret of the first token.
const FIRST: &str = "tunnel-agent-berlin";
/// For kubelets to write a changed Secret into the pods' files.
const MOUNTED: Duration = Duration::from_mins(3);
/// For API servers to forget that they knew a token, and for links to end with it.
const REVOKED: Duration = Duration::from_mins(2);

/// Somebody who rotates.
struct Rotation<'a> {
    testbed: &'a Testbed,
    operator: Operator<'a>,
}

/// With helm: step by step, and then once more after a leak.
pub(crate) fn rotated(testbed: &Testbed) -> Result<()> {
    settled(testbed)?;
    let rotation = Rotation { testbed, operator: readme::operator(testbed)? };
    rotation.renew().context("renewal")?;
    rotation.leak().context("after a leak")?;
    settled(testbed)
}

/// With kubectl: agents of `oslo`, whose release is in the namespace `tunnel`, get another token.
pub(crate) fn own_secret(operator: &Operator<'_>) -> Result<()> {
    let before = replaced(operator, "tunnel")?;
    operator.run(&lines(CREATE)?.replace("berlin", "oslo"))?;
    operator.run(&lines(OWN)?)?;
    look(operator, "tunnel")?;
    relinked(operator, "tunnel", before)
}

/// The commands of a part of the section.
fn lines([from, to]: [&str; 2]) -> Result<String> {
    let [begin, end] = SECTION;
    let lines = commands(section(section(PAGE, begin, end)?, from, to)?);
    ensure!(!lines.is_empty(), "no commands behind {from}");
    Ok(lines.join("\n"))
}

/// How often agents said that they take a new token.
fn replaced(operator: &Operator<'_>, namespace: &str) -> Result<usize> {
    let of = format!("-n {namespace} -l app.kubernetes.io/name=tunnel-agent");
    let logs = operator.run(&format!("kubectl --context berlin logs --tail=-1 {of}"))?;
    Ok(logs.matches("replacing all links").count())
}

/// Waits until both agents have said so once more.
fn relinked(operator: &Operator<'_>, namespace: &str, before: usize) -> Result<()> {
    let both = || Ok(replaced(operator, namespace)? >= before + 2);
    wait::until_true("both agents to link with the new token", MOUNTED, both)
}

/// Has kubelets look at the agents' files now rather than within a minute.
fn look(operator: &Operator<'_>, namespace: &str) -> Result<()> {
    let of = format!("-n {namespace} -l app.kubernetes.io/name=tunnel-agent");
    operator.run(&format!("kubectl --context berlin annotate pods {of} --overwrite looked=$(date +%s%N)")).map(drop)
}

// === impl Rotation ===

impl Rotation<'_> {
    /// Steps 1 to 4. The cluster can be reached after each of them.
    fn renew(&self) -> Result<()> {
        self.operator.run(&format!("{} > first", of_secret(FIRST)))?;
        ensure!(self.is_valid("first")?, "the first token is void");
        let before = replaced(&self.operator, "default")?;
        self.operator.run(&lines(CREATE)?)?;
        self.give()?;
        relinked(&self.operator, "default", before)?;
        self.operator.ended("probe berlin", 0)?;
        self.operator.run(&lines(["3. Revoke the old token, and create another one:\n", "4. Write"])?)?;
        self.void("first")?;
        self.operator.ended("probe berlin", 0)?;
        self.write_from_notes("second")
    }

    /// A new account, and step 4. No token of the old account is left.
    fn leak(&self) -> Result<()> {
        self.operator.run("cp second leaked")?;
        self.operator.run(&format!("{}\ncp agent-token temporary", lines(CREATE)?))?;
        ensure!(self.is_valid("leaked")? && self.is_valid("temporary")?, "void before anything happened");
        let delete = lines(["All links of `berlin` end within half a minute", "Deleting only the Secret"])?;
        ensure!(delete.contains(&format!("secret/{FIRST} ")), "another Secret: {delete}");
        self.operator.run(&delete.replace(&format!("secret/{FIRST} "), &format!("secret/{} ", self.noted()?)))?;
        self.void("leaked")?;
        self.void("temporary")?;
        wait::until("the links to end", REVOKED, || self.operator.ended("probe berlin", 1))?;
        self.write_from_notes("third")?;
        ensure!(!self.is_valid("leaked")? && !self.is_valid("temporary")?, "they are valid again");
        Ok(())
    }

    /// Step 2, in the way for helm.
    fn give(&self) -> Result<()> {
        self.operator.run(&lines(["#### The token in helm's values\n", "`helm rollback`"])?)?;
        look(&self.operator, "default")
    }

    /// Step 4; the token is then also in `file`.
    fn write_from_notes(&self, file: &str) -> Result<()> {
        let before = replaced(&self.operator, "default")?;
        let command = of_secret(&self.noted()?);
        // The hub fills the Secret a moment after helm has created it.
        let token = || Ok(!self.operator.run(&command)?.is_empty());
        wait::until_true("another token", REVOKED, token)?;
        self.operator.run(&format!("(umask 077; {command} > agent-token)\ncp agent-token {file}"))?;
        ensure!(self.is_valid(file)?, "the new token is void");
        self.give()?;
        relinked(&self.operator, "default", before)?;
        wait::until("the cluster to answer", MOUNTED, || self.operator.ended("probe berlin", 0)).map(drop)
    }

    /// The Secret that the notes name, whose command is that of [`of_secret`].
    fn noted(&self) -> Result<String> {
        let notes = self.operator.run("helm get notes cluster-gateway -n vela-system")?;
        let (_, rest) = notes.split_once("the token of the agent of berlin:").context("no notes")?;
        let command = rest.lines().find(|line| line.contains("kubectl ")).context("no command")?.trim();
        let name = command.split_whitespace().nth(5).with_context(|| command.to_owned())?;
        ensure!(command == of_secret(name), "another command: {command}");
        Ok(name.to_owned())
    }

    /// Whether the hub takes the token in a file of the operator's.
    fn is_valid(&self, file: &str) -> Result<bool> {
        let token = std::fs::read_to_string(self.operator.directory().join(file))?;
        Ok(self.testbed.hub.server.user_of(token.trim())?.is_some())
    }

    fn void(&self, file: &str) -> Result<()> {
        wait::until_true(&format!("the token {file} to be void"), REVOKED, || Ok(!self.is_valid(file)?))
    }
}

/// The notes' command.
fn of_secret(name: &str) -> String {
    format!("kubectl -n vela-system get secret {name} -o jsonpath='{{.data.token}}' | base64 -d")
}
