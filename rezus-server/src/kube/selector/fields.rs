//! Field selectors: which values fields must have.

use super::SelectorError;
use crate::kube::kinds::KindInfo;

/// Which values an object's fields must have. The empty one selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: &'static str,
    value: String,
    is_equal: bool,
}

impl FieldSelector {
    /// Reads a selector of objects of a kind: terms with commas between, all to be met. `f=v`, `f==v`, `f!=v`; in a value
    /// `\` stands before `\`, `,` and `=`.
    ///
    /// # Errors
    ///
    /// [`SelectorError`] where it cannot be read, or names a field that cannot be selected by.
    pub fn parse(text: &str, kind: &KindInfo) -> Result<Self, SelectorError> {
        let terms = split(text).into_iter().filter(|term| !term.is_empty());
        terms.map(|term| self::term(term, kind)).collect::<Result<_, _>>().map(Self)
    }

    /// Tells whether it selects whatever there is.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether it selects an object whose fields `field` gives by label. A field that is absent is empty.
    pub fn matches<'f>(&self, field: impl Fn(&str) -> Option<&'f str>) -> bool {
        self.0.iter().all(|term| (field(term.field).unwrap_or_default() == term.value) == term.is_equal)
    }

    /// Returns the one name that selected objects have, if it names one.
    pub fn name(&self) -> Option<&str> {
        let term = self.0.iter().find(|term| term.field == "metadata.name" && term.is_equal)?;
        Some(&term.value)
    }
}

/// Splits at commas that no backslash stands before.
fn split(text: &str) -> Vec<&str> {
    let (mut terms, mut from, mut escaped) = (Vec::new(), 0, false);
    for (place, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[from..place]);
                from = place + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[from..]);
    terms
}

fn term(term: &str, kind: &KindInfo) -> Result<Term, SelectorError> {
    let refused = |why: &str| {
        let term: String = term.chars().take(200).collect();
        SelectorError(format!("invalid field selector: {why}, in {term:?}"))
    };
    let operator = term.find(['=', '!']).ok_or_else(|| refused("expected FIELD=VALUE or FIELD!=VALUE"))?;
    let (field, rest) = term.split_at(operator);
    let (value, is_equal) = if let Some(value) = rest.strip_prefix("!=") {
        (value, false)
    } else if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        (value, true)
    } else {
        return Err(refused("expected FIELD=VALUE or FIELD!=VALUE"));
    };
    let field = field.trim();
    let known = ["metadata.name"].into_iter();
    let known = known.chain(kind.namespaced.then_some("metadata.namespace"));
    let known = known.chain(kind.fields.iter().copied()).find(|name| *name == field);
    let field = known.ok_or_else(|| {
        let field: String = field.chars().take(200).collect();
        SelectorError(format!("field label not supported: {field}"))
    })?;
    Ok(Term {
        field,
        value: unescaped(value).ok_or_else(|| {
            refused("in a value, \\ stands before \\, ',' and =, and before nothing else; , and = need it")
        })?,
        is_equal,
    })
}

fn unescaped(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain.push(chars.next().filter(|char| matches!(char, '\\' | ',' | '='))?),
            '=' | ',' => return None,
            char => plain.push(char),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::kinds::{EVENT, MACHINE, TENANT};

    fn selects(selector: &str, fields: &[(&str, &str)]) -> bool {
        let field = |label: &str| fields.iter().find(|(name, _)| *name == label).map(|(_, value)| *value);
        FieldSelector::parse(selector, &MACHINE).unwrap().matches(field)
    }

    #[test]
    fn each_term_means_what_kubernetes_means_by_it() {
        let fields = [("metadata.name", "web-1"), ("metadata.namespace", "prod"), ("spec.role", "a,b=c\\")];
        for (selector, expected) in [
            ("", true),
            (",", true),
            ("metadata.name=web-1", true),
            ("metadata.name==web-1", true),
            ("metadata.name!=web-1", false),
            ("metadata.name=web-1,metadata.namespace!=prod", false),
            ("metadata.name=web-1,,metadata.namespace=prod", true),
            ("spec.role=a\\,b\\=c\\\\", true),
            ("spec.nodeGroup=", true),
            ("spec.nodeGroup!=", false),
            ("spec.nodeGroup!=x", true),
        ] {
            assert_eq!(selects(selector, &fields), expected, "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_with_its_part() {
        for (selector, part) in [
            ("metadata.name", "expected FIELD=VALUE"),
            ("metadata.name=a=b", "stands before"),
            ("metadata.name=a\\b", "stands before"),
            ("metadata.name=a\\", "stands before"),
            ("metadata.name!a", "expected FIELD=VALUE"),
            ("spec.nosuch=1", "field label not supported: spec.nosuch"),
            ("involvedObject.kind=Tenant", "field label not supported: involvedObject.kind"),
        ] {
            let error = FieldSelector::parse(selector, &MACHINE).unwrap_err().to_string();
            assert!(error.contains(part), "{selector}: {error}");
        }
        assert!(FieldSelector::parse("metadata.namespace=a", &TENANT).is_err());
        assert!(FieldSelector::parse("involvedObject.namespace=,reason=x", &EVENT).is_ok());
    }

    #[test]
    fn the_one_name_is_told() {
        let name = |selector| FieldSelector::parse(selector, &MACHINE).unwrap().name().map(ToOwned::to_owned);
        assert_eq!(name("metadata.name=a,spec.role=worker"), Some("a".to_owned()));
        assert_eq!(name("metadata.name!=a"), None);
    }
}
