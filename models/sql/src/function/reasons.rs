//! The functions that return the reason for a missing answer. They do not ask the model.

use std::sync::Arc;

use datafusion::arrow::array::StringArray;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};

use super::arguments::Arguments;
use super::{Call, Functions};

/// `extract_reason`, `classify_reason` or `matches_reason`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Reasons {
    call: Call,
    functions: Functions,
    signature: Signature,
}

impl Reasons {
    pub(super) fn new(call: Call, functions: Functions) -> Self {
        Self { call, functions, signature: call.signature() }
    }
}

impl ScalarUDFImpl for Reasons {
    fn name(&self) -> &str {
        self.call.name_of_reasons()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        internal_err!("the arguments of {} are looked at", self.name())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        self.call.planned(&arguments, &self.functions.constraints)?;
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = self.functions.prepare(self.call, &Arguments::new(&arguments)?)?;
        let reasons = rows.into_iter().map(std::result::Result::err);
        Ok(ColumnarValue::Array(Arc::new(StringArray::from_iter(reasons))))
    }
}
