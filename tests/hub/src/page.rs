//! Reads the project's pages for tests that follow them word by word.
//!
//! A place on a page is some of its words, quoted by the test, so that a page that says something
//! else fails it (`tests/structure/tests/structure/blocks.rs` requires the quote).

use anyhow::{Context as _, Result, bail};

/// What follows `words`.
pub fn below<'a>(page: &'a str, words: &str) -> Result<&'a str> {
    Ok(page.split_once(words).with_context(|| format!("no {words:?}"))?.1)
}

/// The part between two texts.
pub fn section<'a>(page: &'a str, from: &str, to: &str) -> Result<&'a str> {
    let rest = below(page, from)?;
    Ok(rest.split_once(to).with_context(|| format!("no {to:?} behind {from:?}"))?.0)
}

/// The fenced blocks in `language`.
pub fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    text.split("```").filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// The first fenced block in `language`.
pub fn first<'a>(text: &'a str, language: &str) -> Result<&'a str> {
    blocks(text, language).next().with_context(|| format!("no block in {language}"))
}

/// The only fenced block in `language` that contains `words`.
pub fn block<'a>(text: &'a str, language: &str, words: &str) -> Result<&'a str> {
    let found: Vec<&str> = blocks(text, language).filter(|block| block.contains(words)).collect();
    let [block] = found[..] else { bail!("{} blocks with {words:?}", found.len()) };
    Ok(block)
}

/// The lines of indented blocks; a line that ends with a backslash is joined with the next one.
pub fn commands(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    lines.join("\n").replace("\\\n", " ").lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(
        "# A\n## B\n\n    a \\\n      b\n\n    c\n\n",
        "## C\n```sh\nd\ne\n```\n- f\n  ```yaml\n  g\n  ```\n\n```sh\nh\n```\n## D\n"
    );

    #[test]
    fn parts_are_found_by_their_words() {
        assert_eq!(below(PAGE, "\n## D").unwrap(), "\n");
        assert_eq!(commands(section(PAGE, "## B\n", "## C").unwrap()), ["a    b", "c"]);
        for (from, to) in [("## E", "## C"), ("## C", "## B")] {
            assert!(section(PAGE, from, to).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn blocks_are_found_by_their_language() {
        assert_eq!(blocks(PAGE, "sh").collect::<Vec<_>>(), ["d\ne\n", "h\n"]);
        assert_eq!(first(PAGE, "yaml").unwrap(), "  g\n  ");
        assert_eq!(block(PAGE, "sh", "h").unwrap(), "h\n");
        assert!(first(PAGE, "s").is_err() && block(PAGE, "sh", "\n").is_err() && block(PAGE, "sh", "g").is_err());
    }
}
