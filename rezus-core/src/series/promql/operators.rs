//! Operators and aggregations by their tokens.

use promql_parser::parser::token::{
    T_ADD, T_ATAN2, T_AVG, T_BOTTOMK, T_COUNT, T_DIV, T_EQLC, T_GROUP, T_GTE, T_GTR, T_LAND, T_LOR, T_LSS,
    T_LTE, T_LUNLESS, T_MAX, T_MIN, T_MOD, T_MUL, T_NEQ, T_POW, T_QUANTILE, T_STDDEV, T_STDVAR, T_SUB, T_SUM,
    T_TOPK,
};
use promql_parser::parser::{AggregateExpr, BinaryExpr, LabelModifier, VectorMatchCardinality};

use super::ParseError;
use super::node::{Aggregation, Grouping, Many, Matching, On, Operator, Scalar, SetOperator, Vector};
use super::plan::{Plan, is_scalar, unsupported};

fn operator(binary: &BinaryExpr) -> Result<Operator, ParseError> {
    Ok(match binary.op.id() {
        T_ADD => Operator::Add,
        T_SUB => Operator::Subtract,
        T_MUL => Operator::Multiply,
        T_DIV => Operator::Divide,
        T_MOD => Operator::Remainder,
        T_POW => Operator::Power,
        T_ATAN2 => Operator::Atan2,
        T_EQLC => Operator::Equal,
        T_NEQ => Operator::NotEqual,
        T_GTR => Operator::Greater,
        T_LSS => Operator::Less,
        T_GTE => Operator::GreaterOrEqual,
        T_LTE => Operator::LessOrEqual,
        _ => {
            return Err(unsupported(
                format!("the operator {}", binary.op),
                "use arithmetic, comparisons, and, or, unless",
            ));
        }
    })
}

/// Walks an operator between numbers.
pub(super) fn scalar(plan: &mut Plan, binary: &BinaryExpr) -> Result<Scalar, ParseError> {
    let (left, right) = (plan.scalar(&binary.lhs)?, plan.scalar(&binary.rhs)?);
    Ok(Scalar::Binary(operator(binary)?, Box::new(left), Box::new(right)))
}

/// Walks an operator with a vector on at least one side.
pub(super) fn vector(plan: &mut Plan, binary: &BinaryExpr) -> Result<Vector, ParseError> {
    let is_bool = binary.return_bool();
    let fills = binary.modifier.as_ref().map(|modifier| &modifier.fill_values);
    if fills.is_some_and(|fill| fill.lhs.is_some() || fill.rhs.is_some()) {
        return Err(unsupported("fill", "use `or` with a vector of what is to be there"));
    }
    let set = match binary.op.id() {
        T_LAND => Some(SetOperator::And),
        T_LOR => Some(SetOperator::Or),
        T_LUNLESS => Some(SetOperator::Unless),
        _ => None,
    };
    if let Some(set) = set {
        let (left, right) = (plan.vector(&binary.lhs)?, plan.vector(&binary.rhs)?);
        return Ok(Vector::Set(set, Box::new(left), Box::new(right), on(binary)));
    }
    let operator = operator(binary)?;
    let (scalar, vector, is_swapped) = match (is_scalar(&binary.lhs), is_scalar(&binary.rhs)) {
        (true, _) => (&binary.lhs, &binary.rhs, true),
        (_, true) => (&binary.rhs, &binary.lhs, false),
        (false, false) => {
            let (left, right) = (plan.vector(&binary.lhs)?, plan.vector(&binary.rhs)?);
            let matching = Matching { on: on(binary), many: many(binary) };
            let (left, right) = (Box::new(left), Box::new(right));
            return Ok(Vector::Matched { operator, left, right, matching, is_bool });
        }
    };
    let (vector, scalar) = (Box::new(plan.vector(vector)?), plan.scalar(scalar)?);
    Ok(Vector::WithScalar { operator, vector, scalar, is_swapped, is_bool })
}

fn on(binary: &BinaryExpr) -> On {
    match binary.modifier.as_ref().and_then(|modifier| modifier.matching.as_ref()) {
        Some(LabelModifier::Include(labels)) => On::These(labels.labels.clone()),
        Some(LabelModifier::Exclude(labels)) => On::AllBut(labels.labels.clone()),
        None => On::AllBut(Vec::new()),
    }
}

fn many(binary: &BinaryExpr) -> Many {
    match binary.modifier.as_ref().map(|modifier| &modifier.card) {
        Some(VectorMatchCardinality::ManyToOne(labels)) => Many::Left(labels.labels.clone()),
        Some(VectorMatchCardinality::OneToMany(labels)) => Many::Right(labels.labels.clone()),
        Some(VectorMatchCardinality::OneToOne | VectorMatchCardinality::ManyToMany) | None => Many::Neither,
    }
}

/// Walks an aggregation.
pub(super) fn aggregation(plan: &mut Plan, aggregation: &AggregateExpr) -> Result<Vector, ParseError> {
    let by = match aggregation.op.id() {
        T_SUM => Aggregation::Sum,
        T_AVG => Aggregation::Average,
        T_MIN => Aggregation::Least,
        T_MAX => Aggregation::Most,
        T_COUNT => Aggregation::Count,
        T_GROUP => Aggregation::Group,
        T_STDDEV => Aggregation::Deviation,
        T_STDVAR => Aggregation::Variance,
        T_QUANTILE => Aggregation::Quantile,
        T_TOPK => Aggregation::Top,
        T_BOTTOMK => Aggregation::Bottom,
        _ => {
            return Err(unsupported(
                aggregation.op.to_string(),
                "use sum, avg, min, max, count, group, stddev, stdvar, quantile, topk or bottomk",
            ));
        }
    };
    let parameter = aggregation.param.as_ref().map(|parameter| plan.scalar(parameter)).transpose()?;
    let grouping = match &aggregation.modifier {
        Some(LabelModifier::Include(labels)) => Grouping::By(labels.labels.clone()),
        Some(LabelModifier::Exclude(labels)) => Grouping::Without(labels.labels.clone()),
        None => Grouping::By(Vec::new()),
    };
    let of = Box::new(plan.vector(&aggregation.expr)?);
    Ok(Vector::Aggregated { by, grouping, parameter, of })
}
