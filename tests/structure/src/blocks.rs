//! Blocks of commands in the workspace's pages, and the mark before each: which test runs it, or
//! why none does.
//!
//! A mark is an HTML comment, which readers do not see. It stands before its block, or, beginning
//! with `section`, directly below a heading: then it holds for all blocks below that heading which
//! have none of their own.

/// Languages of fenced blocks of commands. A block that is only indented has no language, and
/// counts as commands too: everything else is fenced.
const COMMANDS: [&str; 4] = ["sh", "shell", "bash", "console"];
/// Least number of words that identify a place on a page.
const WORDS: usize = 3;
/// Length of a heading's sign; a quoted heading is longer.
const SIGN: usize = 4;
/// Length that a reason must exceed: a reason is a phrase, not a word.
const REASON: usize = 15;

/// A block of commands of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Counted from 1.
    pub line: usize,
    /// `None` for an indented block.
    pub language: Option<String>,
    pub text: String,
    pub mark: Option<String>,
    /// The headings above it, from the outermost, each with the prose below it so far.
    pub above: String,
}

/// Content of a mark.
#[derive(Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    RunBy { file: &'a str, function: &'a str },
    NotRun { reason: &'a str },
}

/// State of reading a page.
#[derive(Default)]
struct Reader {
    found: Vec<Block>,
    /// The headings above, from the outermost.
    sections: Vec<Section>,
    open: Option<Block>,
    mark: Option<String>,
    last: Line,
}

/// A heading, and what is below it.
#[derive(Default)]
struct Section {
    level: usize,
    mark: Option<String>,
    /// Its line, and prose.
    text: String,
}

/// Kind of the previous line that is not blank.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Prose,
    Heading,
    Comment,
}

/// The blocks of commands of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    let mut is_free = true;
    for (index, line) in text.lines().enumerate() {
        reader.line(index + 1, line, is_free);
        is_free = line.trim().is_empty() || reader.last != Line::Prose;
    }
    reader.close();
    reader.found.retain(|block| block.language.as_deref().is_none_or(|language| COMMANDS.contains(&language)));
    reader.found
}

// === impl Reader ===

impl Reader {
    /// `is_free`: the line continues no paragraph.
    fn line(&mut self, number: usize, line: &str, is_free: bool) {
        let words = line.trim();
        if let Some(open) = self.open.as_mut().filter(|open| open.language.is_some()) {
            if words.starts_with("```") {
                self.close();
            } else {
                add(&mut open.text, line);
            }
        } else if let Some(language) = words.strip_prefix("```") {
            self.close();
            self.begin(number, Some(language.to_owned()));
        } else if words.is_empty() {
            if let Some(open) = &mut self.open {
                add(&mut open.text, "");
            }
        } else if line.starts_with("    ") && (is_free || self.open.is_some()) {
            if self.open.is_none() {
                self.begin(number, None);
            }
            if let Some(open) = &mut self.open {
                add(&mut open.text, line);
            }
        } else {
            self.close();
            self.prose(words);
            if let Some(section) = self.sections.last_mut() {
                add(&mut section.text, words);
            }
        }
    }

    fn prose(&mut self, words: &str) {
        let mark = words.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")).map(str::trim);
        match (mark, mark.and_then(|mark| mark.strip_prefix("section ")), self.sections.last_mut()) {
            (Some(_), Some(mark), Some(section)) if self.last == Line::Heading => section.mark = Some(mark.to_owned()),
            (mark, ..) => self.mark = mark.map(str::to_owned),
        }
        let level = words.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 {
            self.sections.retain(|above| above.level < level);
            self.sections.push(Section { level, ..Section::default() });
        }
        self.last = match (level, mark) {
            (0, None) => Line::Prose,
            (0, Some(_)) => Line::Comment,
            _ => Line::Heading,
        };
    }

    fn begin(&mut self, line: usize, language: Option<String>) {
        let section = || self.sections.iter().rev().find_map(|section| section.mark.clone());
        let mark = self.mark.take().or_else(section);
        self.last = Line::Prose;
        let above = self.sections.iter().map(|section| &*section.text).collect();
        self.open = Some(Block { line, language, mark, above, ..Block::default() });
    }

    fn close(&mut self) {
        self.found.extend(self.open.take());
    }
}

fn add(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

// === impl Block ===

impl Block {
    /// The heading directly above the block, without its sign; empty if there is none.
    pub fn heading(&self) -> &str {
        let heading = self.above.lines().rfind(|line| line.starts_with('#')).unwrap_or_default();
        heading.trim_start_matches('#').trim_start()
    }

    /// The block's commands, without their output, notes behind it, and empty lines. A command
    /// continues in the next line after a backslash or a pipe.
    pub fn commands(&self) -> Vec<String> {
        let piped: Vec<&str> = self.text.split(" |\n").map(str::trim_start).collect();
        let text = piped.join(" | ").replace("\\\n", " ");
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        match self.language.as_deref() {
            Some("console") => lines.filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect(),
            _ => lines.map(str::to_owned).collect(),
        }
    }

    /// The content of the block's mark, or what is wrong with it.
    ///
    /// # Errors
    ///
    /// The block has no mark, or one without content.
    pub fn mark(&self) -> Result<Mark<'_>, String> {
        let mark = self.mark.as_deref().ok_or("no mark: run it in a test, or say why none does")?;
        if let Some(reason) = mark.strip_prefix("not run:") {
            return (reason.len() > REASON)
                .then_some(Mark::NotRun { reason })
                .ok_or_else(|| "no reason why not".to_owned());
        }
        let test = mark.strip_prefix("run by:").map(str::trim).ok_or_else(|| format!("no mark, but {mark:?}"))?;
        let (file, function) = test.split_once("::").ok_or_else(|| format!("no FILE::FUNCTION: {test}"))?;
        Ok(Mark::RunBy { file, function })
    }
}

/// The files and directories in a reason. A file without a directory is in that of the previous
/// one.
pub fn named(reason: &str) -> Vec<String> {
    let words = reason.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '(', ')', '`']));
    let mut found: Vec<String> = Vec::new();
    for word in words {
        if word.contains('/') && !word.starts_with(['~', '/']) {
            found.push(word.to_owned());
        } else if let Some((beside, _)) = found.last().and_then(|last| last.rsplit_once('/'))
            && word.strip_suffix(".rs").is_some()
        {
            found.push(format!("{beside}/{word}"));
        }
    }
    found
}

/// The reason why the test `function` of a `source` does not run `block` of `page`, if it does not:
/// the test must exist, and either contain each command as written on the page, or read the page
/// and quote the place on it.
pub fn unrun(source: &str, function: &str, page: &str, block: &Block) -> Option<String> {
    if !source.contains(&format!("fn {function}(")) {
        return Some(format!("there is no test {function}"));
    }
    let has = |text: &str| source.contains(&format!("\"{text}\""));
    let known = |command: &String| has(command) || command.strip_prefix("kubectl clusters ").is_some_and(has);
    let reads = source.contains(&format!("../{page}\"")) && block.language.as_deref() != Some("console");
    let commands = block.commands();
    match commands.iter().find(|command| !known(command)) {
        Some(command) if !reads => Some(format!("{function} neither reads {page} nor has: {command}")),
        Some(_) if !finds(source, block) => Some(format!("{page} is read, but nothing quotes where this is")),
        None if commands.is_empty() => Some("it has no command".to_owned()),
        _ => None,
    }
}

/// Whether `source` quotes a text that locates the block: part of a heading, a bold lead, a mark,
/// or some words above or in it.
fn finds(source: &str, block: &Block) -> bool {
    let quotes = source.split('"').map(|quote| quote.replace("\\n", "\n").trim().to_owned());
    let begins = |quote: &str| ["#", "**", "<!--"].iter().any(|sign| quote.starts_with(sign)) && quote.len() > SIGN;
    let mut places = quotes.filter(|quote| begins(quote) || quote.matches(' ').count() + 1 >= WORDS);
    places.any(|quote| block.above.contains(&quote) || block.text.contains(&quote))
}

#[cfg(test)]
mod tests;
