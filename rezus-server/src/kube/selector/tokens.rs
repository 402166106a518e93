//! The words and signs of a label selector.

use std::fmt;

/// One word or sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    Word(&'t str),
    Equal,
    NotEqual,
    Not,
    Above,
    Below,
    Open,
    Close,
    Comma,
    End,
}

/// What is left of a selector's text.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'t>(&'t str);

impl<'t> Tokens<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self(text)
    }

    /// The next one, which stays the next.
    pub(super) fn peek(&self) -> Token<'t> {
        self.clone().next()
    }

    /// The next one; [`Token::End`] for ever once nothing is left.
    pub(super) fn next(&mut self) -> Token<'t> {
        let rest = self.0.trim_start();
        for (sign, token) in [
            ("==", Token::Equal),
            ("=", Token::Equal),
            ("!=", Token::NotEqual),
            ("!", Token::Not),
            (">", Token::Above),
            ("<", Token::Below),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
        ] {
            if let Some(behind) = rest.strip_prefix(sign) {
                self.0 = behind;
                return token;
            }
        }
        let ends = |char: char| char.is_whitespace() || "=!><(),".contains(char);
        let (word, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        self.0 = behind;
        if word.is_empty() { Token::End } else { Token::Word(word) }
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word(word) => return write!(f, "{word:?}"),
            Self::Equal => "'='",
            Self::NotEqual => "'!='",
            Self::Not => "'!'",
            Self::Above => "'>'",
            Self::Below => "'<'",
            Self::Open => "'('",
            Self::Close => "')'",
            Self::Comma => "','",
            Self::End => "the end",
        })
    }
}
