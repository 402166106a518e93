//! The audit trail, for admins.

use axum::Json;
use axum::extract::State;
use rezus_core::access::{AuditFilter, AuditRow, Role, TokenId};
use serde::{Deserialize, Serialize};

use super::views::List;
use super::{Query, tenant};
use crate::auth::Who;
use crate::auth::rights::needs;
use crate::compose::Plane;
use crate::error::ApiError;

/// How many rows are listed if nothing else is asked for, and at most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 10_000;

/// Which rows are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    tenant: Option<String>,
    who: Option<String>,
    limit: Option<usize>,
}

/// One row.
#[derive(Debug, Serialize)]
pub(super) struct AuditView {
    at: String,
    who: String,
    groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    from: String,
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    object: String,
    code: u16,
}

impl AuditView {
    fn of(row: AuditRow) -> Self {
        Self {
            at: row.at.to_string(),
            who: row.who,
            groups: row.groups,
            token: row.token.as_ref().map(TokenId::to_string),
            from: row.from,
            action: row.action,
            tenant: row.tenant.map(|tenant| tenant.to_string()),
            object: row.object,
            code: row.code,
        }
    }
}

pub(super) async fn list(
    State(plane): State<Plane>,
    who: Who,
    Query(which): Query<Which>,
) -> Result<Json<List<AuditView>>, ApiError> {
    let filter = AuditFilter {
        tenant: which.tenant.as_deref().map(tenant).transpose()?,
        who: which.who,
        limit: which.limit.unwrap_or(ROWS).min(MOST_ROWS),
    };
    match &filter.tenant {
        Some(tenant) => who.must_be(Role::Admin, tenant)?,
        None if !who.is_admin() => return Err(needs(&who.0, Role::Admin, None)),
        None => {}
    }
    // What happened before this request is in its answer.
    plane.auth.trail().flush().await;
    let rows = plane.auth.book().store().audit(&filter).await?;
    Ok(Json(List { items: rows.into_iter().map(AuditView::of).collect() }))
}
