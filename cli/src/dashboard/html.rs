//! HTML without foreign markup: all markup is known at compile time, and everything else is
//! escaped.

use crate::text_table::is_command;

/// A piece of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Html(String);

// === impl Html ===

impl Html {
    /// Adds markup. It must be `'static`, which keeps the words of hub, gateway and clusters out of
    /// it.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds words, between tags or in a quoted attribute. Replaces control characters, and
    /// characters that reverse the order of what follows.
    pub fn text(&mut self, words: &str) -> &mut Self {
        for character in words.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(' '),
                character if is_command(character) => self.0.push('\u{fffd}'),
                character => self.0.push(character),
            }
        }
        self
    }

    /// Adds another piece.
    pub fn part(&mut self, part: &Self) -> &mut Self {
        self.0.push_str(&part.0);
        self
    }

    #[cfg(test)]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that a browser shows for it between tags.
    fn unescaped(text: &str) -> String {
        let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        pairs.into_iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
    }

    proptest! {
        #[test]
        fn words_stay_words(words in "(?s).{0,64}|[<>&\"'a=/ ;#x]{0,64}") {
            let mut html = Html::default();
            html.text(&words);
            let text = html.into_string();
            prop_assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
            prop_assert!(text.chars().all(|character| !is_command(character)), "{text:?}");
            // Each `&` begins one of the five entities.
            for rest in text.split('&').skip(1) {
                let known = ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|entity| rest.starts_with(entity));
                prop_assert!(known, "{text}");
            }
            let plain = |character: char| match character {
                '\n' | '\t' => ' ',
                character if is_command(character) => '\u{fffd}',
                character => character,
            };
            prop_assert_eq!(unescaped(&text), words.chars().map(plain).collect::<String>());
        }
    }

    #[test]
    fn an_attribute_is_not_left() {
        let mut html = Html::default();
        html.raw("<a title=\"").text("\u{202e}x\" onload='alert(1)'><script>").raw("\">");
        assert_eq!(html.as_str(), "<a title=\"\u{fffd}x&quot; onload=&#39;alert(1)&#39;&gt;&lt;script&gt;\">");
    }
}
