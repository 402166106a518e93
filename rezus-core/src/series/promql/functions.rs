//! Functions by their names.

use promql_parser::parser::{Call, Expr};

use super::ParseError;
use super::node::{Each, Order, OverTime, Scalar, Vector};
use super::plan::{Plan, unsupported, unwrapped};

const OVER_TIME: [OverTime; 17] = [
    OverTime::Rate,
    OverTime::Increase,
    OverTime::Delta,
    OverTime::Irate,
    OverTime::Idelta,
    OverTime::Changes,
    OverTime::Resets,
    OverTime::Average,
    OverTime::Least,
    OverTime::Most,
    OverTime::Sum,
    OverTime::Count,
    OverTime::Last,
    OverTime::Present,
    OverTime::Deviation,
    OverTime::Variance,
    OverTime::Quantile,
];

const EACH: [(&str, Each); 9] = [
    ("abs", Each::Abs),
    ("ceil", Each::Ceil),
    ("floor", Each::Floor),
    ("sqrt", Each::Sqrt),
    ("exp", Each::Exp),
    ("ln", Each::Ln),
    ("log2", Each::Log2),
    ("log10", Each::Log10),
    ("sgn", Each::Sign),
];

fn refused(call: &Call) -> ParseError {
    unsupported(
        format!("{}()", call.func.name),
        "use rate, increase, delta, irate, idelta, changes, resets, *_over_time, abs, ceil, floor, round, clamp, sqrt, exp, ln, log2, log10, sgn, timestamp, time, vector, scalar or sort",
    )
}

fn arguments(call: &Call) -> Vec<&Expr> {
    call.args.args.iter().map(AsRef::as_ref).collect()
}

fn wrong(call: &Call) -> ParseError {
    ParseError::Syntax(format!("{}() has other arguments", call.func.name))
}

/// Walks a function whose result is a number at each step.
pub(super) fn scalar(plan: &mut Plan, call: &Call) -> Result<Scalar, ParseError> {
    Ok(match (call.func.name, arguments(call).as_slice()) {
        ("time", []) => Scalar::Time,
        ("pi", []) => Scalar::Number(std::f64::consts::PI),
        ("scalar", [of]) => Scalar::Only(Box::new(plan.vector(of)?)),
        ("time" | "pi" | "scalar", _) => return Err(wrong(call)),
        _ => return Err(refused(call)),
    })
}

/// Walks a function whose result has values of series at each step.
pub(super) fn vector(plan: &mut Plan, call: &Call) -> Result<Vector, ParseError> {
    let name = call.func.name;
    let arguments = arguments(call);
    if let Some(function) = OVER_TIME.into_iter().find(|function| function.name() == name) {
        return match (function, arguments.as_slice()) {
            (OverTime::Quantile, [quantile, of]) => {
                let quantile = plan.scalar(quantile)?;
                Ok(Vector::OverTime(function, Some(quantile), plan.range(of, function)?))
            }
            (OverTime::Quantile, _) => Err(wrong(call)),
            (_, [of]) => Ok(Vector::OverTime(function, None, plan.range(of, function)?)),
            _ => Err(wrong(call)),
        };
    }
    if let Some((_, function)) = EACH.into_iter().find(|(own, _)| *own == name) {
        let [of] = arguments.as_slice() else { return Err(wrong(call)) };
        return Ok(Vector::Each(function, Box::new(plan.vector(of)?)));
    }
    let mut of = |expression: &Expr| plan.vector(expression).map(Box::new);
    Ok(match (name, arguments.as_slice()) {
        ("vector", [of]) => Vector::Constant(plan.scalar(of)?),
        ("timestamp", [expression]) => match unwrapped(expression) {
            Expr::VectorSelector(selector) => Vector::Taken(plan.select(selector, None, false)?),
            _ => Vector::StepTimes(of(expression)?),
        },
        ("sort", [expression]) => Vector::Sorted(Order::Rising, of(expression)?),
        ("sort_desc", [expression]) => Vector::Sorted(Order::Falling, of(expression)?),
        ("round", [expression]) => Vector::Rounded(of(expression)?, Scalar::Number(1.0)),
        ("round", [expression, nearest]) => Vector::Rounded(of(expression)?, plan.scalar(nearest)?),
        ("clamp", [expression, least, most]) => Vector::Clamped {
            of: of(expression)?,
            least: Some(plan.scalar(least)?),
            most: Some(plan.scalar(most)?),
        },
        ("clamp_min", [expression, least]) => {
            Vector::Clamped { of: of(expression)?, least: Some(plan.scalar(least)?), most: None }
        }
        ("clamp_max", [expression, most]) => {
            Vector::Clamped { of: of(expression)?, least: None, most: Some(plan.scalar(most)?) }
        }
        (
            "vector" | "timestamp" | "sort" | "sort_desc" | "round" | "clamp" | "clamp_min" | "clamp_max",
            _,
        ) => {
            return Err(wrong(call));
        }
        _ => return Err(refused(call)),
    })
}
