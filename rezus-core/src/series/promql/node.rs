//! What a query is made of, once it is known to make sense: scalars and vectors cannot be mistaken for each other.

use std::time::Duration;

use crate::base::Timestamp;
use crate::series::Matcher;

/// A whole query.
#[derive(Debug)]
pub(super) enum Root {
    /// A number at each step.
    Scalar(Scalar),
    /// Values of series at each step.
    Vector(Vector),
    /// The samples of a window: at one time only.
    Window(Selected),
}

/// The place of a selector among all of a query.
pub(super) type Selected = usize;

/// A selector, and what is done with what it selects.
#[derive(Debug)]
pub(super) struct Selector {
    pub(super) matchers: Vec<Matcher>,
    /// How far back, in milliseconds; negative for ahead.
    pub(super) offset: i64,
    pub(super) anchor: Anchor,
    /// How long the window is, of a range selector.
    pub(super) window: Option<Duration>,
    /// Whether spans may stand for samples where both are kept.
    pub(super) coarse: bool,
}

/// From when a selector looks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    /// From each step.
    Step,
    /// From where the query's range begins.
    Start,
    /// From where it ends.
    End,
    /// From this time.
    At(Timestamp),
}

/// What is a number at each step.
#[derive(Debug)]
pub(super) enum Scalar {
    Number(f64),
    /// The time of the step, in seconds.
    Time,
    Negated(Box<Self>),
    /// The value of the only element.
    Only(Box<Vector>),
    Binary(Operator, Box<Self>, Box<Self>),
}

/// What has values of series at each step.
#[derive(Debug)]
pub(super) enum Vector {
    Instant(Selected),
    /// When the values that would be selected were taken, in seconds.
    Taken(Selected),
    OverTime(OverTime, Option<Scalar>, Selected),
    /// A scalar as an element without labels.
    Constant(Scalar),
    Each(Each, Box<Self>),
    /// When the values are of: the step, in seconds.
    StepTimes(Box<Self>),
    Clamped {
        of: Box<Self>,
        least: Option<Scalar>,
        most: Option<Scalar>,
    },
    Rounded(Box<Self>, Scalar),
    Sorted(Order, Box<Self>),
    Negated(Box<Self>),
    Aggregated {
        by: Aggregation,
        grouping: Grouping,
        parameter: Option<Scalar>,
        of: Box<Self>,
    },
    /// Each element with a scalar.
    WithScalar {
        operator: Operator,
        vector: Box<Self>,
        scalar: Scalar,
        /// Whether the scalar is on the left.
        is_swapped: bool,
        is_bool: bool,
    },
    /// Elements with those that match them.
    Matched {
        operator: Operator,
        left: Box<Self>,
        right: Box<Self>,
        matching: Matching,
        is_bool: bool,
    },
    /// Elements by whether some match them.
    Set(SetOperator, Box<Self>, Box<Self>, On),
}

/// In which order elements are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Rising,
    Falling,
}

/// What is done with the samples of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverTime {
    Rate,
    Increase,
    Delta,
    Irate,
    Idelta,
    Changes,
    Resets,
    Average,
    Least,
    Most,
    Sum,
    Count,
    Last,
    Present,
    Deviation,
    Variance,
    Quantile,
}

/// What is done with each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    Abs,
    Ceil,
    Floor,
    Sqrt,
    Exp,
    Ln,
    Log2,
    Log10,
    Sign,
}

/// What is made of the elements of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregation {
    Sum,
    Average,
    Least,
    Most,
    Count,
    Group,
    Deviation,
    Variance,
    Quantile,
    Top,
    Bottom,
}

/// Which elements are a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Those that have these labels in common.
    By(Vec<String>),
    /// Those that have all others in common.
    Without(Vec<String>),
}

/// An operator between numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Atan2,
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

/// An operator between sets of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetOperator {
    And,
    Or,
    Unless,
}

/// By which labels elements match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum On {
    These(Vec<String>),
    /// All but these, and but the metric's name.
    AllBut(Vec<String>),
}

/// How elements match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matching {
    pub(super) on: On,
    pub(super) many: Many,
}

/// On which side several elements may match one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Many {
    Neither,
    /// On the left; these labels come from the right.
    Left(Vec<String>),
    /// On the right; these labels come from the left.
    Right(Vec<String>),
}

impl OverTime {
    /// Whether what is wanted can be told of spans as well as of samples.
    pub(super) fn takes_spans(self) -> bool {
        !matches!(self, Self::Changes | Self::Resets | Self::Deviation | Self::Variance | Self::Quantile)
    }

    /// Whether spans are as good as samples where both are kept.
    pub(super) fn prefers_spans(self) -> bool {
        self.takes_spans() && !matches!(self, Self::Irate | Self::Idelta)
    }

    /// The function's name in a query.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Increase => "increase",
            Self::Delta => "delta",
            Self::Irate => "irate",
            Self::Idelta => "idelta",
            Self::Changes => "changes",
            Self::Resets => "resets",
            Self::Average => "avg_over_time",
            Self::Least => "min_over_time",
            Self::Most => "max_over_time",
            Self::Sum => "sum_over_time",
            Self::Count => "count_over_time",
            Self::Last => "last_over_time",
            Self::Present => "present_over_time",
            Self::Deviation => "stddev_over_time",
            Self::Variance => "stdvar_over_time",
            Self::Quantile => "quantile_over_time",
        }
    }
}

impl Operator {
    /// Whether it keeps or drops what is on its left.
    pub(super) fn compares(self) -> bool {
        match self {
            Self::Add
            | Self::Subtract
            | Self::Multiply
            | Self::Divide
            | Self::Remainder
            | Self::Power
            | Self::Atan2 => false,
            Self::Equal
            | Self::NotEqual
            | Self::Greater
            | Self::Less
            | Self::GreaterOrEqual
            | Self::LessOrEqual => true,
        }
    }

    /// Whether what comes out of it is no more of the same metric. `atan2` keeps the name, as Prometheus 2 has it.
    pub(super) fn drops_name(self) -> bool {
        !self.compares() && self != Self::Atan2
    }
}
