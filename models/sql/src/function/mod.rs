//! The functions of SQL.
//!
//! - [`Call`] is the called function: its arguments, the source of its constraint, its prompt.
//! - [`Generating`] is the asynchronous function; [`Reasons`] is the ordinary function that returns
//!   the reason for a missing answer.
//! - `arguments` reads the columns of a batch, `calls_in_projections` moves calls to projections.

mod arguments;
mod calls_in_projections;
mod generating;
mod reasons;

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use burn_dfa_decoder::Pretrained;
use burn_dfa_engine::Prompt;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::logical_expr::async_udf::AsyncScalarUDF;
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF, Signature, TypeSignature, Volatility};
use datafusion::prelude::SessionContext;

use crate::constraints::{Compiled, Constraints, Refusal, Source};
use crate::engine::Engine;
use crate::prompts::{PromptTemplates, Prompter, fill};
use arguments::Arguments;
use calls_in_projections::CallsInProjections;
use generating::Generating;
use reasons::Reasons;

/// The functions with their dependencies. Clones share them.
///
/// A process that runs queries has an engine. A process that only plans them, such as the scheduler
/// of a cluster or a client, has only the constraints, so that a refused schema is an error of
/// planning there as well.
///
/// ```
/// use std::sync::Arc;
/// use burn_dfa::{Limits, Vocabulary};
/// use burn_dfa_sql::{Constraints, Functions, Sizes, session};
/// use datafusion::prelude::SessionContext;
///
/// # let files = burn_dfa_sql::embedded_files();
/// let (vocabulary, capacity) = (Vocabulary::from_files(&files)?, Sizes::default().capacity);
/// let constraints = Constraints::new(vocabulary, Limits::default(), capacity);
/// let context = SessionContext::new_with_config(session::settings(1024));
/// Functions::planning(Arc::new(constraints)).register(&context);
///
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let refused =
///     runtime.block_on(context.sql(r#"SELECT extract('Ada', '{"type": "sting"}')"#)).unwrap_err();
/// assert!(refused.to_string().contains("/type"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Functions {
    constraints: Arc<Constraints>,
    runner: Option<Arc<Runner>>,
}

/// Runs calls.
#[derive(Debug)]
struct Runner {
    engine: Engine,
    prompter: Prompter,
}

impl Functions {
    /// For a process that only plans queries.
    pub fn planning(constraints: Arc<Constraints>) -> Self {
        Self { constraints, runner: None }
    }

    /// For a process that runs queries, on the engine of a model.
    pub fn running(
        constraints: Arc<Constraints>,
        engine: Engine,
        pretrained: Arc<Pretrained>,
        templates: PromptTemplates,
    ) -> Self {
        let runner = Runner { engine, prompter: Prompter::new(pretrained, templates) };
        Self { constraints, runner: Some(Arc::new(runner)) }
    }

    /// The engine, if there is one.
    pub fn engine(&self) -> Option<&Engine> {
        self.runner.as_ref().map(|runner| &runner.engine)
    }

    /// All functions.
    pub fn all(&self) -> Vec<Arc<ScalarUDF>> {
        let functions = Call::ALL.into_iter().flat_map(|call| {
            let generating = Generating::new(call, self.clone());
            let reasons = Reasons::new(call, self.clone());
            [AsyncScalarUDF::new(Arc::new(generating)).into_scalar_udf(), ScalarUDF::new_from_impl(reasons)]
        });
        functions.map(Arc::new).collect()
    }

    /// Adds all functions to a session.
    pub fn register(&self, context: &SessionContext) {
        self.all().into_iter().for_each(|function| context.register_udf(Arc::unwrap_or_clone(function)));
        context.add_analyzer_rule(Arc::new(CallsInProjections));
    }

    /// The engine that runs a call, and the prompts for it.
    fn runner(&self) -> Result<&Runner> {
        let runner = self.runner.as_deref();
        runner.ok_or_else(|| exec_datafusion_err!("this process plans queries and has no engine to run them"))
    }

    /// The prompt of each row, or the reason for its missing answer.
    fn prepare(&self, call: Call, arguments: &Arguments) -> Result<Vec<std::result::Result<Prompt, String>>> {
        let runner = self.runner()?;
        // The source is mostly the same for all rows.
        let mut last: Option<(Source, std::result::Result<Arc<Compiled>, Refusal>)> = None;
        let rows = (0..arguments.rows()).map(|row| -> std::result::Result<Prompt, String> {
            let row = arguments.row(row).ok_or("an argument is null")?;
            let message = call.message(&row, &runner.prompter.templates).ok_or("the text is empty")?;
            let source = call.source(&row[1..])?;
            if last.as_ref().is_none_or(|(known, _)| *known != source) {
                last = Some((source.clone(), self.constraints.get(&source)));
            }
            let compiled = last.as_ref().map(|(_, compiled)| compiled.clone()).expect("it was just found")?;
            let sizes = runner.engine.sizes();
            let tokens = runner.prompter.encode(&message, sizes)?;
            let (budget, shortest) = (sizes.budget(tokens.len()), compiled.shortest());
            if budget < shortest {
                return Err(format!(
                    "{budget} tokens are left for the answer, and the shortest takes {shortest}"
                ));
            }
            let constraint = Some(compiled.constraint.clone().into());
            Ok(Prompt { tokens, max_new_tokens: budget, constraint })
        });
        Ok(rows.collect())
    }
}

/// Compares by identity.
impl PartialEq for Functions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.constraints, &other.constraints)
    }
}

impl Eq for Functions {}

impl Hash for Functions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.constraints).hash(state);
    }
}

/// A function of SQL that asks the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    /// `extract(text, schema)`, `extract(text, schema, whitespace)`.
    Extract,
    /// `classify(text, label, label, …)`.
    Classify,
    /// `matches(text, pattern)`, `matches(text, pattern, instruction)`.
    Matches,
}

impl Call {
    const ALL: [Self; 3] = [Self::Extract, Self::Classify, Self::Matches];

    fn name(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Classify => "classify",
            Self::Matches => "matches",
        }
    }

    /// The name of the function that returns the reason for a missing answer.
    fn name_of_reasons(self) -> &'static str {
        match self {
            Self::Extract => "extract_reason",
            Self::Classify => "classify_reason",
            Self::Matches => "matches_reason",
        }
    }

    /// All arguments are text. The session must cast them to `Utf8`, since a literal stays a
    /// literal then.
    fn signature(self) -> Signature {
        let exact = |count| TypeSignature::Exact(vec![DataType::Utf8; count]);
        match self {
            Self::Classify => Signature::variadic(vec![DataType::Utf8], Volatility::Stable),
            Self::Extract | Self::Matches => Signature::one_of(vec![exact(2), exact(3)], Volatility::Stable),
        }
    }

    /// The range of the arguments that form the constraint, out of `count`.
    fn constraining(self, count: usize) -> Range<usize> {
        match self {
            Self::Matches => 1..2,
            Self::Extract | Self::Classify => 1..count,
        }
    }

    /// The constraint of the arguments after the text.
    ///
    /// # Errors
    /// The name of the white space is invalid.
    fn source(self, rest: &[&str]) -> std::result::Result<Source, Refusal> {
        Ok(match self {
            Self::Extract => {
                let whitespace = rest.get(1).map(|name| name.parse()).transpose();
                let whitespace = whitespace.map_err(|error: burn_dfa::Error| error.to_string())?;
                Source::Schema(rest[0].to_owned(), whitespace)
            }
            Self::Classify => Source::Labels(rest.iter().map(|&label| label.to_owned()).collect()),
            Self::Matches => Source::Pattern(rest[0].to_owned()),
        })
    }

    /// The message to the model; `None` if the text is empty.
    fn message(self, row: &[&str], templates: &PromptTemplates) -> Option<String> {
        let text = row[0];
        let is_blank = text.trim().is_empty();
        match (self, row) {
            (Self::Matches, [_, _, instruction]) => {
                Some(fill(&templates.matches, &[("text", text), ("instruction", *instruction)]))
            }
            _ if is_blank => None,
            (Self::Extract, _) => Some(fill(&templates.extract, &[("text", text), ("schema", row[1])])),
            (Self::Classify, _) => {
                let labels = row[1..].join(", ");
                Some(fill(&templates.classify, &[("text", text), ("labels", &labels)]))
            }
            (Self::Matches, _) => Some(text.to_owned()),
        }
    }

    /// Compiles a constraint of literals.
    ///
    /// # Errors
    /// If the constraint is refused, or arguments are missing, planning fails.
    fn planned(
        self,
        arguments: &ReturnFieldArgs,
        constraints: &Constraints,
    ) -> Result<Option<Arc<Compiled>>> {
        let literals = arguments.scalar_arguments;
        if literals.len() < 2 {
            return plan_err!("{} takes a text and at least one label", self.name());
        }
        let literals = literals[self.constraining(literals.len())].iter();
        let texts: Option<Vec<&str>> = literals.map(|literal| literal.and_then(text_of)).collect();
        let Some(texts) = texts else { return Ok(None) };
        let compiled = self.source(&texts).and_then(|source| constraints.get(&source));
        compiled.map(Some).map_err(|refusal| plan_datafusion_err!("{}: {refusal}", self.name()))
    }
}

/// The text of a literal that is not null.
fn text_of(literal: &ScalarValue) -> Option<&str> {
    literal.try_as_str().flatten()
}
