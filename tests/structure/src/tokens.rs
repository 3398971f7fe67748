//! Rust's text as words and signs, without comments, and with or without string literals.

/// A word (an identifier, a keyword, a number), one sign, or a string literal: a quote and its
/// content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// Counted from 1.
    pub line: usize,
}

/// The words and signs of `source`. Lifetimes lose their quote.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = tokens_and_literals(source);
    tokens.retain(|token| token.literal().is_none());
    tokens
}

/// The same, and its string literals.
pub fn tokens_and_literals(source: &str) -> Vec<Token> {
    let mut reader = Reader { text: source.chars().collect(), at: 0, line: 1, tokens: Vec::new() };
    while reader.at < reader.text.len() {
        reader.step();
    }
    reader.tokens
}

// === impl Token ===

impl Token {
    /// The content of a string literal.
    pub fn literal(&self) -> Option<&str> {
        self.text.strip_prefix('"')
    }
}

// === impl Reader ===

struct Reader {
    text: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl Reader {
    fn step(&mut self) {
        let here = self.text[self.at];
        match (here, self.peek(1)) {
            ('/', Some('/')) => self.skip_line(),
            ('/', Some('*')) => self.skip_block(),
            ('"', _) => self.string(),
            ('\'', _) => self.skip_quote(),
            _ if here.is_alphanumeric() || here == '_' => self.word(),
            _ => {
                if !here.is_whitespace() {
                    self.tokens.push(Token { text: here.to_string(), line: self.line });
                }
                self.advance();
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn advance(&mut self) {
        if self.peek(0) == Some('\n') {
            self.line += 1;
        }
        self.at += 1;
    }

    fn advance_by(&mut self, count: usize) {
        for _ in 0..count {
            self.advance();
        }
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|sign| sign != '\n') {
            self.advance();
        }
    }

    /// Block comments nest.
    fn skip_block(&mut self) {
        let mut depth = 0;
        while self.peek(0).is_some() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.advance();
                    continue;
                }
            }
            self.advance_by(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        let (mut text, line) = (String::from('"'), self.line);
        self.advance();
        while let Some(sign) = self.peek(0) {
            self.advance();
            match sign {
                '"' => break,
                '\\' => self.escaped(&mut text),
                _ => text.push(sign),
            }
        }
        self.tokens.push(Token { text, line });
    }

    /// After a backslash: another sign, or a line break, which is left out along with the next
    /// line's indentation.
    fn escaped(&mut self, text: &mut String) {
        let Some(sign) = self.peek(0) else { return };
        self.advance();
        match sign {
            'n' => text.push('\n'),
            '\n' => {
                while self.peek(0).is_some_and(char::is_whitespace) {
                    self.advance();
                }
            }
            _ => text.push(sign),
        }
    }

    /// From the first `#` or `"` of a raw string to its end.
    fn raw_string(&mut self) {
        let (mut text, line, mut hashes) = (String::from('"'), self.line, 0);
        while self.peek(0) == Some('#') {
            hashes += 1;
            self.advance();
        }
        self.advance();
        while let Some(sign) = self.peek(0) {
            self.advance();
            if sign == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.advance_by(hashes);
                break;
            }
            text.push(sign);
        }
        self.tokens.push(Token { text, line });
    }

    /// A character, or the quote of a lifetime.
    fn skip_quote(&mut self) {
        if self.peek(1) == Some('\\') {
            self.advance_by(3); // the escaped sign too, which may be a quote
            while self.peek(0).is_some_and(|sign| sign != '\'') {
                self.advance();
            }
            self.advance();
        } else if self.peek(2) == Some('\'') {
            self.advance_by(3);
        } else {
            self.advance();
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(|sign| sign.is_alphanumeric() || sign == '_') {
            self.at += 1;
        }
        let text: String = self.text[start..self.at].iter().collect();
        let raw = matches!(text.as_str(), "r" | "br" | "cr");
        let hashes = self.text[self.at..].iter().take_while(|sign| **sign == '#').count();
        match self.peek(hashes) {
            Some('"') if raw => self.raw_string(),
            _ => self.tokens.push(Token { text, line: self.line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(words("a // crate::x\nb /* crate::y /* deep */ crate::z */ c"), ["a", "b", "c"]);
        assert_eq!(words("/// [`crate::x`]\n//! crate::y\nfn"), ["fn"]);
    }

    #[test]
    fn literals_are_left_out() {
        assert_eq!(words(r#"a "crate::x \" crate::y" b"#), ["a", "b"]);
        assert_eq!(words(r##"a r#"crate::x " crate::y"# br"\" c"##), ["a", "c"]);
        assert_eq!(words(r"a '\'' '\\' '\u{1f}' '{' b"), ["a", "b"]);
        assert_eq!(words(r#"b"x" c"y" "\\" z"#), ["b", "c", "z"]);
    }

    #[test]
    fn literals_are_kept_for_those_who_ask() {
        let said = |source: &str| {
            let tokens = tokens_and_literals(source);
            tokens.iter().filter_map(Token::literal).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(said("a // \"b\"\n\"c \\\n  d\" 'e' f!(\"g\\\"h\\n\", b\"\")"), ["c d", "g\"h\n", ""]);
        assert_eq!(said(r##"r#"a "b" \n"# br"c""##), ["a \"b\" \\n", "c"]);
    }

    #[test]
    fn a_lifetime_is_no_character() {
        assert_eq!(words("fn f<'a>(x: &'a str)"), ["fn", "f", "<", "a", ">", "(", "x", ":", "&", "a", "str", ")"]);
    }

    #[test]
    fn a_raw_identifier_is_a_word() {
        assert_eq!(words("r#type"), ["r", "#", "type"]);
    }

    #[test]
    fn lines_count_through_everything() {
        let source = "a /*\n\n*/ \"\n\\\n\" r#\"\n\"#\nb";
        assert_eq!(tokens(source).last().map(|token| (token.text.as_str(), token.line)), Some(("b", 7)));
    }
}
