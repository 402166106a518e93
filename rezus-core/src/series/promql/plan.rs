//! From a text to a query that can be evaluated, or to the reason why it cannot.

use std::time::{Duration, UNIX_EPOCH};

use promql_parser::label::{self, MatchOp};
use promql_parser::parser::{self as ast, AtModifier, Expr, Offset};

use super::node::{Anchor, OverTime, Root, Scalar, Selected, Selector, Vector};
use super::{ParseError, Query, functions, operators};
use crate::base::Timestamp;
use crate::series::{Matcher, Operator};

/// The longest query that is read, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// How many operators, parentheses and braces it may have: each may nest it once more, and what is nested is walked by calls.
const MOST_SIGNS: usize = 500;

/// How many regular expressions it may have, and of how many bytes together: each is compiled three times, which is the one
/// thing here that takes much more time than there is text.
const MOST_EXPRESSIONS: usize = 20;
const MOST_EXPRESSION_BYTES: usize = 4 << 10;

/// Reads a query.
pub(super) fn query(text: &str) -> Result<Query, ParseError> {
    let expression = parse(text)?;
    let mut plan = Plan { selectors: Vec::new() };
    let root = match unwrapped(&expression) {
        Expr::MatrixSelector(matrix) => Root::Window(plan.select(&matrix.vs, Some(matrix.range), false)?),
        expression if is_scalar(expression) => Root::Scalar(plan.scalar(expression)?),
        expression => Root::Vector(plan.vector(expression)?),
    };
    Ok(Query { root, selectors: plan.selectors })
}

/// Reads the matchers of a selector.
pub(super) fn selector(text: &str) -> Result<Vec<Matcher>, ParseError> {
    match parse(text)? {
        Expr::VectorSelector(selector) if selector.offset.is_none() && selector.at.is_none() => {
            matchers(&selector)
        }
        _ => Err(ParseError::Syntax(format!("{text:?} is no selector of series"))),
    }
}

fn parse(text: &str) -> Result<Expr, ParseError> {
    let too_long = ParseError::TooLong { most_bytes: MOST_BYTES, most_signs: MOST_SIGNS };
    let size = size(text);
    if text.len() > MOST_BYTES || size.signs > MOST_SIGNS {
        return Err(too_long);
    }
    if size.expressions > MOST_EXPRESSIONS || size.expression_bytes > MOST_EXPRESSION_BYTES {
        return Err(ParseError::TooManyExpressions {
            most: MOST_EXPRESSIONS,
            most_bytes: MOST_EXPRESSION_BYTES,
        });
    }
    // The parser panics at numbers that are no length of time, as in `up[1e30]`.
    let parsed = std::panic::catch_unwind(|| ast::parse(text));
    parsed.unwrap_or_else(|_| Err("a number is out of range".to_owned())).map_err(ParseError::Syntax)
}

/// How much a query has of what costs.
#[derive(Default)]
struct Size {
    signs: usize,
    expressions: usize,
    expression_bytes: usize,
}

/// Counts regular expressions, and what may nest a query, at least: signs and words, as `and` is one, outside of texts and comments. What those are
/// is what they are to the parser's lexer, to which a backslash escapes in every kind of text.
fn size(text: &str) -> Size {
    let mut size = Size::default();
    let mut is_word = false;
    // Whether the text that comes next is a regular expression: `~` is in no other operator.
    let mut is_expression = false;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let was_word = std::mem::replace(&mut is_word, c.is_alphanumeric() || matches!(c, '_' | ':' | '.'));
        size.signs += usize::from(was_word && !is_word);
        match c {
            '"' | '\'' | '`' => {
                let begun = rest.as_str().len();
                while let Some(inner) = rest.next().filter(|inner| *inner != c) {
                    if inner == '\\' {
                        rest.next();
                    }
                }
                if std::mem::take(&mut is_expression) {
                    size.expressions += 1;
                    size.expression_bytes += begun - rest.as_str().len();
                }
            }
            '#' => while rest.next().is_some_and(|inner| !matches!(inner, '\r' | '\n')) {},
            ',' | ')' | '}' | ']' => {}
            c => {
                is_expression |= c == '~';
                size.signs += usize::from(!is_word && !c.is_whitespace());
            }
        }
    }
    size
}

pub(super) fn unwrapped(expression: &Expr) -> &Expr {
    let mut expression = expression;
    while let Expr::Paren(inner) = expression {
        expression = &inner.expr;
    }
    expression
}

/// Whether an expression is a number at each step.
pub(super) fn is_scalar(expression: &Expr) -> bool {
    expression.value_type() == ast::value::ValueType::Scalar
}

pub(super) fn unsupported(what: impl Into<String>, instead: &'static str) -> ParseError {
    ParseError::Unsupported { what: what.into(), instead }
}

/// What a query is made of, as far as it was walked.
#[derive(Debug)]
pub(super) struct Plan {
    selectors: Vec<Selector>,
}

impl Plan {
    /// Walks what is a number at each step.
    pub(super) fn scalar(&mut self, expression: &Expr) -> Result<Scalar, ParseError> {
        Ok(match unwrapped(expression) {
            Expr::NumberLiteral(number) => Scalar::Number(number.val),
            Expr::Unary(unary) => Scalar::Negated(Box::new(self.scalar(&unary.expr)?)),
            Expr::Binary(binary) => operators::scalar(self, binary)?,
            Expr::Call(call) => functions::scalar(self, call)?,
            other => return Err(ParseError::Syntax(format!("a scalar is expected, not {other}"))),
        })
    }

    /// Walks what has values of series at each step.
    pub(super) fn vector(&mut self, expression: &Expr) -> Result<Vector, ParseError> {
        Ok(match unwrapped(expression) {
            Expr::VectorSelector(selector) => Vector::Instant(self.select(selector, None, true)?),
            Expr::Unary(unary) => Vector::Negated(Box::new(self.vector(&unary.expr)?)),
            Expr::Binary(binary) => operators::vector(self, binary)?,
            Expr::Call(call) => functions::vector(self, call)?,
            Expr::Aggregate(aggregation) => operators::aggregation(self, aggregation)?,
            Expr::Subquery(_) => {
                return Err(unsupported("a subquery", "use a range of a selector, as in rate(up[5m])"));
            }
            Expr::StringLiteral(_) => {
                return Err(unsupported("a text", "ask for a number or for series"));
            }
            other => return Err(ParseError::Syntax(format!("an instant vector is expected, not {other}"))),
        })
    }

    /// Walks a range that is an argument of a function.
    pub(super) fn range(&mut self, expression: &Expr, function: OverTime) -> Result<Selected, ParseError> {
        match unwrapped(expression) {
            Expr::MatrixSelector(matrix) => {
                self.select(&matrix.vs, Some(matrix.range), function.prefers_spans())
            }
            Expr::Subquery(_) => {
                Err(unsupported("a subquery", "use a range of a selector, as in rate(up[5m])"))
            }
            other => Err(ParseError::Syntax(format!("a range vector is expected, not {other}"))),
        }
    }

    /// Adds a selector.
    pub(super) fn select(
        &mut self,
        selector: &ast::VectorSelector,
        window: Option<Duration>,
        coarse: bool,
    ) -> Result<Selected, ParseError> {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let offset = match &selector.offset {
            None => 0,
            Some(Offset::Pos(back)) => millis(*back),
            Some(Offset::Neg(ahead)) => -millis(*ahead),
        };
        let anchor = match &selector.at {
            None => Anchor::Step,
            Some(AtModifier::Start) => Anchor::Start,
            Some(AtModifier::End) => Anchor::End,
            Some(AtModifier::At(time)) => {
                Anchor::At(Timestamp::from_millis(match time.duration_since(UNIX_EPOCH) {
                    Ok(after) => millis(after),
                    Err(before) => -millis(before.duration()),
                }))
            }
        };
        let matchers = matchers(selector)?;
        self.selectors.push(Selector { matchers, offset, anchor, window, coarse });
        Ok(self.selectors.len() - 1)
    }
}

fn matchers(selector: &ast::VectorSelector) -> Result<Vec<Matcher>, ParseError> {
    if !selector.matchers.or_matchers.is_empty() {
        return Err(unsupported("`or` between matchers", "use `or` between selectors"));
    }
    let own = |matcher: &label::Matcher| {
        let operator = match matcher.op {
            MatchOp::Equal => Operator::Equal,
            MatchOp::NotEqual => Operator::NotEqual,
            MatchOp::Re(_) => Operator::Matches,
            MatchOp::NotRe(_) => Operator::DoesNotMatch,
        };
        Matcher::new(&matcher.name, operator, &matcher.value)
    };
    let name = selector.name.iter().map(|name| Matcher::new(crate::series::NAME, Operator::Equal, name));
    let others = selector.matchers.matchers.iter().map(own);
    Ok(name.chain(others).collect::<Result<_, _>>()?)
}
