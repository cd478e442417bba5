//! The asynchronous functions, which ask the model.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::logical_expr::async_udf::AsyncScalarUDFImpl;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};
use serde_json::Value;

use super::arguments::Arguments;
use super::{Call, Functions, text_of};
use crate::shape::Shape;

/// `extract`, `classify` or `matches`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Generating {
    call: Call,
    functions: Functions,
    signature: Signature,
}

impl Generating {
    pub(super) fn new(call: Call, functions: Functions) -> Self {
        Self { call, functions, signature: call.signature() }
    }

    /// The shape of the answers, if the planner saw the schema.
    fn shape(&self, arguments: &ScalarFunctionArgs) -> Result<Option<Shape>> {
        if self.call != Call::Extract {
            return Ok(None);
        }
        let rest = arguments.args[1..].iter().map(|argument| match argument {
            ColumnarValue::Scalar(literal) => text_of(literal),
            ColumnarValue::Array(_) => None,
        });
        let Some(rest) = rest.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let source = self.call.source(&rest);
        let compiled = source.and_then(|source| self.functions.constraints.get(&source));
        let shape = compiled
            .map_err(|refusal| exec_datafusion_err!("{}: {refusal}", self.call.name()))?
            .shape
            .clone();
        let (planned, found) = (arguments.return_type(), shape.data_type());
        match *planned == found {
            true => Ok(Some(shape)),
            false => internal_err!("{} was planned as {planned} and is {found}", self.call.name()),
        }
    }
}

impl ScalarUDFImpl for Generating {
    fn name(&self) -> &str {
        self.call.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        internal_err!("the type of {} depends on its literals", self.call.name())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let planned = self.call.planned(&arguments, &self.functions.constraints)?;
        let of_schema =
            planned.filter(|_| self.call == Call::Extract).map(|compiled| compiled.shape.data_type());
        Ok(Arc::new(Field::new(self.call.name(), of_schema.unwrap_or(DataType::Utf8), true)))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{} is asynchronous", self.call.name())
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Generating {
    async fn invoke_async_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (call, functions, shape) = (self.call, self.functions.clone(), self.shape(&arguments)?);
        // Encodes texts and compiles schemas of rows on a blocking thread.
        let prepared =
            tokio::task::spawn_blocking(move || functions.prepare(call, &Arguments::new(&arguments)?));
        let prepared = prepared.await.map_err(|error| exec_datafusion_err!("{}: {error}", call.name()))??;
        let asked: Vec<bool> = prepared.iter().map(Result::is_ok).collect();
        let prompts = prepared.into_iter().flatten().collect();
        let answers = self.functions.runner()?.engine.run(prompts).await;
        let mut answers = answers.map_err(|failure| exec_datafusion_err!("{failure}"))?.into_iter();
        let answers = asked.into_iter().map(|asked| asked.then(|| answers.next()).flatten());
        column(answers.collect(), shape.as_ref())
            .map(ColumnarValue::Array)
            .map_err(|error| exec_datafusion_err!("{}: {error}", call.name()))
    }
}

/// The column of some answers: of a shape, or as text. JSON of any shape is the text as generated,
/// with its white space; JSON's null becomes SQL's null.
fn column(answers: Vec<Option<String>>, shape: Option<&Shape>) -> Result<ArrayRef, String> {
    let shape = match shape {
        None => return Ok(Arc::new(StringArray::from(answers))),
        Some(Shape::Json) => {
            let answers = answers.into_iter().map(|answer| answer.filter(|text| text.trim() != "null"));
            return Ok(Arc::new(StringArray::from_iter(answers)));
        }
        Some(shape) => shape,
    };
    let values =
        answers.iter().map(|answer| answer.as_deref().map(serde_json::from_str::<Value>).transpose());
    let values: Vec<Option<Value>> = values.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    shape.array(&values.iter().map(Option::as_ref).collect::<Vec<_>>())
}
