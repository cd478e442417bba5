//! Moves calls out of clauses in which DataFusion does not wait for them.
//!
//! DataFusion waits for asynchronous functions in projections and filters. In `GROUP BY`,
//! `ORDER BY`, aggregates and windows a call is an error when the query runs. This rule turns such
//! a call into a column of a projection below.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col};
use datafusion::optimizer::AnalyzerRule;

/// Moves calls into projections.
#[derive(Debug)]
pub(super) struct CallsInProjections;

impl AnalyzerRule for CallsInProjections {
    fn name(&self) -> &str {
        "calls_in_projections"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(lower)?.data)
    }
}

fn lower(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Filter(_)) {
        return Ok(Transformed::no(plan));
    }
    let expressions = plan.expressions();
    let calls = calls(&expressions)?;
    let input = match (&calls[..], &plan.inputs()[..]) {
        ([], _) => return Ok(Transformed::no(plan)),
        (_, [input]) => (*input).clone(),
        ([call, ..], _) => return plan_err!("{call} cannot stand in a join: call it in a subquery"),
    };
    let columns = input.schema().columns().into_iter().map(Expr::Column);
    let named = calls.iter().enumerate().map(|(index, call)| call.clone().alias(column(index)));
    let below = columns.chain(named).collect::<Vec<_>>();
    let below = LogicalPlanBuilder::from(input).project(below)?.build()?;

    let names = NamePreserver::new(&plan);
    let expressions = expressions.into_iter().map(|expression| {
        let name = names.save(&expression);
        let replaced =
            expression.transform_down(|part| match calls.iter().position(|call| *call == part) {
                Some(index) => Ok(Transformed::new(col(column(index)), true, TreeNodeRecursion::Jump)),
                None => Ok(Transformed::no(part)),
            })?;
        Ok(match plan {
            // Sort expressions have no name.
            LogicalPlan::Sort(_) => replaced.data,
            _ => name.restore(replaced.data),
        })
    });
    let outer: Vec<_> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let above = plan.with_new_exprs(expressions.collect::<Result<_>>()?, vec![below])?;
    Ok(Transformed::yes(LogicalPlanBuilder::from(above).project(outer)?.build()?))
}

/// The distinct calls in some expressions.
fn calls(expressions: &[Expr]) -> Result<Vec<Expr>> {
    let mut calls = Vec::new();
    for expression in expressions {
        expression.apply(|part| match part {
            Expr::ScalarFunction(function) if function.func.as_async().is_some() => {
                if !calls.contains(part) {
                    calls.push(part.clone());
                }
                Ok(TreeNodeRecursion::Jump)
            }
            _ => Ok(TreeNodeRecursion::Continue),
        })?;
    }
    Ok(calls)
}

fn column(index: usize) -> String {
    format!("__answer_{index}")
}
