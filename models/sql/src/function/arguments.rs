//! The arguments of a call, for all rows of a batch.

use datafusion::arrow::array::{Array, StringArray};
use datafusion::common::cast::as_string_array;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::text_of;

/// Columns of text, of equal length.
pub(super) struct Arguments {
    columns: Vec<Column>,
    rows: usize,
}

enum Column {
    /// The same in all rows.
    Same(Option<String>),
    Each(StringArray),
}

impl Arguments {
    /// # Errors
    /// Where an argument is no text, which the signature excludes.
    pub(super) fn new(arguments: &ScalarFunctionArgs) -> Result<Self> {
        let columns = arguments.args.iter().map(|argument| match argument {
            ColumnarValue::Scalar(literal) if literal.is_null() => Ok(Column::Same(None)),
            ColumnarValue::Scalar(literal) => match text_of(literal) {
                Some(text) => Ok(Column::Same(Some(text.to_owned()))),
                None => exec_err!("an argument of {} where text was planned", literal.data_type()),
            },
            ColumnarValue::Array(array) => Ok(Column::Each(as_string_array(array)?.clone())),
        });
        Ok(Self { columns: columns.collect::<Result<_>>()?, rows: arguments.number_rows })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The texts of a row; `None` where one is null.
    pub(super) fn row(&self, row: usize) -> Option<Vec<&str>> {
        let texts = self.columns.iter().map(|column| match column {
            Column::Same(text) => text.as_deref(),
            Column::Each(texts) => texts.is_valid(row).then(|| texts.value(row)),
        });
        texts.collect()
    }
}
