//! Paths: a subset of `JSONPath` (RFC 9535), with filters by equality.

/// How long a path may be.
const MOST_CHARACTERS: usize = 500;
/// How many steps a path may have.
const MOST_STEPS: usize = 32;
/// How deep filters may nest, by parentheses, `!` or filters in their paths.
const DEEPEST: usize = 8;

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// `$`: the object's attributes.
    Attributes,
    /// `@`: the element, of `each` or under test.
    Element,
    /// `^`: the object around the list that the element is in.
    Around,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Member(String),
    AnyMember,
    Element(i64),
    AllElements,
    Filter(Filter),
}

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) steps: Vec<Step>,
    pub(super) text: String,
}

/// A condition on an element.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Exists(Path),
    Compare { left: Operand, right: Operand, is_equal: bool },
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Path(Path),
    /// A text, or the text of a number or bool.
    Text(String),
    Null,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and where.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST_CHARACTERS {
            return Err(format!("a path longer than {MOST_CHARACTERS} characters"));
        }
        let mut parser = Parser { text, at: 0 };
        let path = parser.path(0)?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.fault("the end of the path"));
        }
        Ok(path)
    }

    /// Returns the name of the member of `attributes` that the path begins with; `None` if it can be any.
    pub(super) fn first_member(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Member(name)) => Some(name),
            _ => None,
        }
    }

    /// Calls `visit` for the path and each one in its filters.
    pub(super) fn each_path<'p>(&'p self, visit: &mut dyn FnMut(&'p Self)) {
        visit(self);
        for step in &self.steps {
            if let Step::Filter(filter) = step {
                filter.each_path(visit);
            }
        }
    }
}

impl Filter {
    fn each_path<'p>(&'p self, visit: &mut dyn FnMut(&'p Path)) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.each_path(visit)),
            Self::Not(part) => part.each_path(visit),
            Self::Exists(path) => path.each_path(visit),
            Self::Compare { left, right, .. } => {
                for side in [left, right] {
                    if let Operand::Path(path) = side {
                        path.each_path(visit);
                    }
                }
            }
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn fault(&self, expected: &str) -> String {
        format!("bad path {:?}: expected {expected} after {} bytes", self.text, self.at)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        let is_there = self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn spaced(&mut self, token: &str) -> bool {
        self.space();
        self.take(token)
    }

    fn path(&mut self, depth: usize) -> Result<Path, String> {
        let start = self.at;
        let root = if self.take("$") {
            Root::Attributes
        } else if self.take("@") {
            Root::Element
        } else if self.take("^") {
            Root::Around
        } else {
            return Err(self.fault("$, @ or ^"));
        };
        let mut steps = Vec::new();
        loop {
            let step = if self.take(".*") {
                Step::AnyMember
            } else if self.take(".") {
                Step::Member(self.word()?)
            } else if self.take("[") {
                self.bracket(depth)?
            } else {
                break;
            };
            if steps.len() == MOST_STEPS {
                return Err(format!("a path of more than {MOST_STEPS} steps"));
            }
            steps.push(step);
        }
        let text = self.text.get(start..self.at).unwrap_or_default().to_owned();
        Ok(Path { root, steps, text })
    }

    fn word(&mut self) -> Result<String, String> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let word: String = self.rest().chars().take_while(|c| is_part(*c)).collect();
        if word.is_empty() {
            return Err(self.fault("a member's name"));
        }
        self.at += word.len();
        Ok(word)
    }

    fn bracket(&mut self, depth: usize) -> Result<Step, String> {
        self.space();
        let step = if self.take("*") {
            Step::AllElements
        } else if self.take("?") {
            Step::Filter(self.any(depth + 1)?)
        } else if self.rest().starts_with(['\'', '"']) {
            Step::Member(self.quoted()?)
        } else {
            let digits: String =
                self.rest().chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
            let number = digits.parse().map_err(|_| self.fault("a number, *, ? or a quoted name"))?;
            self.at += digits.len();
            Step::Element(number)
        };
        if self.spaced("]") { Ok(step) } else { Err(self.fault("]")) }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        let quote = characters.next().map(|(_, c)| c);
        let mut is_escaped = false;
        for (at, character) in characters {
            if is_escaped {
                text.push(match character {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
                is_escaped = false;
            } else if character == '\\' {
                is_escaped = true;
            } else if Some(character) == quote {
                self.at += at + 1;
                return Ok(text);
            } else {
                text.push(character);
            }
        }
        Err(self.fault("a closing quote"))
    }

    fn any(&mut self, depth: usize) -> Result<Filter, String> {
        if depth > DEEPEST {
            return Err(format!("bad path {:?}: nested too deep", self.text));
        }
        let mut parts = vec![self.all(depth)?];
        while self.spaced("||") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Filter, String> {
        let mut parts = vec![self.condition(depth)?];
        while self.spaced("&&") {
            parts.push(self.condition(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::All(parts) })
    }

    fn condition(&mut self, depth: usize) -> Result<Filter, String> {
        self.space();
        let is_negated = self.take("!");
        self.space();
        let filter = if self.take("(") {
            let inner = self.any(depth + 1)?;
            if !self.spaced(")") {
                return Err(self.fault(")"));
            }
            inner
        } else {
            let left = self.operand(depth)?;
            let is_equal = self.spaced("==");
            if is_equal || self.take("!=") {
                if is_negated {
                    return Err(self.fault("parentheses behind !"));
                }
                self.space();
                return Ok(Filter::Compare { left, right: self.operand(depth)?, is_equal });
            }
            match left {
                Operand::Path(path) => Filter::Exists(path),
                Operand::Text(_) | Operand::Null => return Err(self.fault("== or !=")),
            }
        };
        Ok(if is_negated { Filter::Not(Box::new(filter)) } else { filter })
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, String> {
        if self.rest().starts_with(['$', '@', '^']) {
            return self.path(depth).map(Operand::Path);
        }
        if self.rest().starts_with(['\'', '"']) {
            return self.quoted().map(Operand::Text);
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let word: String = self.rest().chars().take_while(|c| is_part(*c)).collect();
        let operand = match word.as_str() {
            "null" => Operand::Null,
            "true" | "false" => Operand::Text(word.clone()),
            number => match crate::declared::resource::Decimal::parse(number) {
                Some(number) => Operand::Text(number.as_str().to_owned()),
                None => return Err(self.fault("a path, a quoted text, a number, true, false or null")),
            },
        };
        self.at += word.len();
        Ok(operand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let path = Path::parse(r#"$.a-b['k8s.io/role \'x\'']["y"][0][-1][*].*"#).unwrap();
        let expected = [
            Step::Member("a-b".into()),
            Step::Member("k8s.io/role 'x'".into()),
            Step::Member("y".into()),
            Step::Element(0),
            Step::Element(-1),
            Step::AllElements,
            Step::AnyMember,
        ];
        assert_eq!(path.steps, expected);
        assert_eq!(Path::parse("@").unwrap().root, Root::Element);
        assert_eq!(Path::parse("^.name").unwrap().root, Root::Around);
    }

    #[test]
    fn filters_bind_as_usual() {
        let path = Path::parse("$.n[?@.a == 'x' && !@.b || (@.c != $.d.e && 1.0 == @.f)].ip").unwrap();
        let Step::Filter(Filter::Any(parts)) = &path.steps[1] else { panic!("{path:?}") };
        assert!(matches!(&parts[0], Filter::All(all) if matches!(all[1], Filter::Not(_))));
        assert!(matches!(&parts[1], Filter::All(all) if all.len() == 2));
        let mut found = Vec::new();
        path.each_path(&mut |path| found.push(path.text.as_str()));
        assert_eq!(found[1..], ["@.a", "@.b", "@.c", "$.d.e", "@.f"]);
    }

    #[test]
    fn bad_paths_are_refused() {
        let deep = format!("$[?{}@.a{}]", "(".repeat(20), ")".repeat(20));
        let bad = [
            "",
            "name",
            "$.",
            "$[",
            "$['a]",
            "$[x]",
            "$.a b",
            "$[?@.a = 'b']",
            "$[?'a']",
            "$[?@.a > 1]",
            "$[?!@.a == 1]",
            "$..a",
            "$[1:2]",
            &deep,
            &"$.a".repeat(300),
            &format!("${}", ".a".repeat(40)),
        ];
        for bad in bad {
            assert!(Path::parse(bad).is_err(), "{bad}");
        }
    }
}
