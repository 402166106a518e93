//! Addresses of provider configurations, as states spell them.
//!
//! `[module.NAME[KEY].]... provider["SOURCE"][.ALIAS][["KEY"]]`; before Terraform 0.13 `provider.TYPE[.ALIAS]`.

use crate::declared::resource::ProviderConfig;

/// Returns a provider's source.
pub(super) fn source(text: &str) -> Option<String> {
    parse(text).map(|config| config.source)
}

/// Reads the address of a provider configuration; the module that it is in does not matter.
pub(super) fn parse(text: &str) -> Option<ProviderConfig> {
    let mut rest = text;
    while let Some(inside) = rest.strip_prefix("module.") {
        rest = after_name(inside).1;
        if rest.starts_with('[') {
            rest = bracketed(rest)?.1;
        }
        rest = rest.strip_prefix('.')?;
    }
    rest = rest.strip_prefix("provider")?;
    let source = if let Some(legacy) = rest.strip_prefix('.') {
        let (name, after) = after_name(legacy);
        rest = after;
        name.to_owned()
    } else {
        let (source, after) = bracketed(rest)?;
        rest = after;
        source
    };
    let mut alias = None;
    if let Some(after) = rest.strip_prefix('.') {
        let (name, after) = after_name(after);
        rest = after;
        alias = Some(name.to_owned());
    }
    let mut key = None;
    if rest.starts_with('[') {
        let (text, after) = bracketed(rest)?;
        rest = after;
        key = Some(text);
    }
    let is_whole = rest.is_empty() && !source.is_empty() && alias.as_deref() != Some("");
    is_whole.then_some(ProviderConfig { source, alias, key })
}

/// Splits behind a name.
fn after_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(['.', '[']).unwrap_or(text.len()))
}

/// Reads `["KEY"]` or `[0]`, and returns the key and what follows.
fn bracketed(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('[')?;
    let Some(quoted) = inside.strip_prefix('"') else {
        let (number, rest) = inside.split_once(']')?;
        return (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
            .then(|| (number.to_owned(), rest));
    };
    let mut key = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((key, quoted.get(at + 1..)?.strip_prefix(']')?)),
            '\\' => match characters.next()?.1 {
                'n' => key.push('\n'),
                'r' => key.push('\r'),
                't' => key.push('\t'),
                escape @ ('u' | 'U') => {
                    let mut number = 0;
                    for _ in 0..if escape == 'u' { 4 } else { 8 } {
                        number = number * 16 + characters.next()?.1.to_digit(16)?;
                    }
                    key.push(char::from_u32(number)?);
                }
                other => key.push(other),
            },
            // `$${` and `%%{` stand for what would begin a template.
            '$' | '%' => {
                key.push(character);
                let rest = quoted.get(at + 1..).and_then(|rest| rest.strip_prefix(character));
                if rest.is_some_and(|rest| rest.starts_with('{')) {
                    characters.next();
                }
            }
            _ => key.push(character),
        }
    }
    None
}
