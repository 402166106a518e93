//! What is known of an object besides its attributes.

use std::borrow::Cow;

use super::rule::Word;
use crate::declared::index::{IndexRow, InstanceKey, Mode};

/// A provider configuration, as a row's `provider` names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Provider<'r> {
    pub(super) source: &'r str,
    pub(super) alias: &'r str,
    pub(super) key: &'r str,
}

impl<'r> Provider<'r> {
    /// Reads `[module.NAME.]...provider["SOURCE"][.ALIAS][["KEY"]]`, or the older `provider.TYPE[.ALIAS]`.
    pub(super) fn of(text: &'r str) -> Self {
        if let Some((_, rest)) = text.split_once("provider[\"") {
            let (source, rest) = rest.split_once("\"]").unwrap_or((rest, ""));
            let rest = rest.strip_prefix('.').unwrap_or_default();
            let (alias, key) = rest.split_once('[').unwrap_or((rest, ""));
            let key = key.strip_suffix(']').unwrap_or(key);
            let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
            return Self { source, alias, key };
        }
        let rest = text.rsplit_once("provider.").map_or("", |(_, rest)| rest);
        let alias = rest.split_once('.').map_or("", |(_, alias)| alias);
        Self { source: "", alias, key: "" }
    }

    /// Tells whether the source says which provider it is: states from before 0.13 say nothing, or the namespace `-`.
    pub(super) fn is_known(source: &str) -> bool {
        !source.is_empty() && source.split('/').nth(1) != Some("-")
    }
}

/// Returns the module calls of a module instance's address, outermost first: name, and key with its brackets.
pub(super) fn modules(address: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = address;
    while let Some(call) = rest.strip_prefix("module.") {
        let end = call.find(['.', '[']).unwrap_or(call.len());
        let (name, tail) = call.split_at(end);
        let key = key_length(tail);
        let (key, tail) = tail.split_at(key);
        found.push((name, key));
        rest = tail.strip_prefix('.').unwrap_or_default();
    }
    found
}

/// Returns how long the key is that a text begins with.
fn key_length(text: &str) -> usize {
    if !text.starts_with('[') {
        return 0;
    }
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b']' if !is_quoted => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the instances of the module calls that an object and a block of the configuration are both within: objects
/// where that is equal can refer to the same instances of the block.
pub(super) fn shared_call(module: &str, block: &str) -> String {
    let (ours, theirs) = (modules(module), modules(block));
    let same = ours.iter().zip(&theirs).take_while(|(a, b)| a.0 == b.0);
    same.flat_map(|((name, key), _)| [*name, *key, "."]).collect()
}

/// Tells whether an object in one module instance can depend on one in another: where both are within the same call,
/// it is the same instance of it.
pub(super) fn can_refer(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (modules(ours), modules(theirs));
    let same = ours.iter().zip(&theirs).take_while(|(a, b)| a.0 == b.0);
    same.into_iter().all(|(a, b)| a.1 == b.1)
}

/// Returns the configuration address of an object: without keys, as `dependencies` spell it.
pub(super) fn block_address(row: &IndexRow) -> String {
    let mut text = String::new();
    for (name, _) in modules(&row.module) {
        text.push_str("module.");
        text.push_str(name);
        text.push('.');
    }
    text.push_str(&type_name(row));
    text.push('.');
    text.push_str(&row.name);
    text
}

/// Returns an object's type as mappings spell it: `X`, or `data.X`.
pub(super) fn type_name(row: &IndexRow) -> Cow<'_, str> {
    match row.mode {
        Mode::Managed => Cow::Borrowed(&row.resource_type),
        Mode::Data => Cow::Owned(format!("data.{}", row.resource_type)),
    }
}

/// Returns the text of a context word; `None` where there is none.
pub(super) fn value(word: Word, row: &IndexRow) -> Option<Cow<'_, str>> {
    let text: Cow<'_, str> = match word {
        Word::Key => match row.key.as_ref()? {
            InstanceKey::Number(number) => number.to_string().into(),
            InstanceKey::Text(text) => text.into(),
        },
        Word::TextKey => match row.key.as_ref()? {
            InstanceKey::Number(_) => return None,
            InstanceKey::Text(text) => text.into(),
        },
        Word::Name => row.name.as_str().into(),
        Word::Type => row.resource_type.as_str().into(),
        Word::Mode => row.mode.to_string().into(),
        Word::Address => row.address.as_str().into(),
        Word::Module => row.module.as_str().into(),
        Word::ModuleName => modules(&row.module).last()?.0.into(),
        Word::ModuleKey => {
            let (_, key) = *modules(&row.module).last()?;
            let key = key.strip_prefix('[')?.strip_suffix(']')?;
            key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key).into()
        }
        Word::ProviderSource => Provider::of(&row.provider).source.into(),
        Word::ProviderAlias => Provider::of(&row.provider).alias.into(),
        Word::ProviderKey => Provider::of(&row.provider).key.into(),
        // The evaluation knows it, not the row.
        Word::Element => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_read_in_all_spellings() {
        let of = |text| {
            let Provider { source, alias, key } = Provider::of(text);
            (source, alias, key)
        };
        assert_eq!(of("provider[\"r/bpg/proxmox\"]"), ("r/bpg/proxmox", "", ""));
        assert_eq!(of("module.x.provider[\"r/bpg/proxmox\"].dc1"), ("r/bpg/proxmox", "dc1", ""));
        assert_eq!(of("provider[\"r/a/b\"].by[\"k\"]"), ("r/a/b", "by", "k"));
        assert_eq!(of("module.a.provider.aws.eu"), ("", "eu", ""));
        assert_eq!(of("provider.aws"), ("", "", ""));
        assert_eq!(of(""), ("", "", ""));
        assert!(!Provider::is_known("registry.terraform.io/-/aws"));
    }

    #[test]
    fn modules_are_read_with_any_keys() {
        assert_eq!(
            modules(r#"module.a["x.y\"]z"].module.b[0].module.c"#),
            [("a", r#"["x.y\"]z"]"#), ("b", "[0]"), ("c", "")]
        );
        assert_eq!(modules(""), []);
        assert!(can_refer("module.a[\"x\"]", "module.a[\"x\"].module.b[0]"));
        assert!(!can_refer("module.a[\"x\"].module.b", "module.a[\"y\"].module.c"));
        assert!(can_refer("module.a[\"x\"]", "module.b[\"y\"]") && can_refer("", "module.b[0]"));
    }
}
