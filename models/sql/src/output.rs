//! Results as text.

use std::io::{self, Write};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{EncoderOptions, LineDelimited, make_encoder};
use datafusion::arrow::json::{self, LineDelimitedWriter};
use datafusion::arrow::util::pretty::pretty_format_batches;

/// The format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table to read, written at the end.
    Table,
    /// CSV with a header, batch by batch; columns of structs and lists are JSON text.
    Csv,
    /// A line of JSON for each row, batch by batch.
    Json,
}

/// Writes a result, batch by batch.
pub struct Writer<W: Write> {
    inner: FormatWriter<W>,
}

/// The writer of one format.
enum FormatWriter<W: Write> {
    Table { schema: SchemaRef, batches: Vec<RecordBatch>, left: usize, into: W },
    Csv { writer: Box<csv::Writer<W>>, header: Option<SchemaRef> },
    Json(json::Writer<W, LineDelimited>),
}

impl<W: Write> Writer<W> {
    /// Writes a result with these columns in a format; a table has at most `max_rows` rows.
    pub fn new(into: W, format: Format, schema: SchemaRef, max_rows: usize) -> Self {
        let inner = match format {
            Format::Table => FormatWriter::Table { schema, batches: Vec::new(), left: max_rows, into },
            Format::Csv => FormatWriter::Csv {
                writer: Box::new(csv::WriterBuilder::new().build(into)),
                header: Some(schema),
            },
            Format::Json => FormatWriter::Json(
                json::WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(into),
            ),
        };
        Self { inner }
    }

    /// Writes a batch; false: the writer needs no more batches.
    ///
    /// # Errors
    /// Writing fails.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<bool, ArrowError> {
        match &mut self.inner {
            FormatWriter::Table { batches, left, .. } => {
                let taken = batch.num_rows().min(*left);
                *left -= taken;
                batches.push(batch.slice(0, taken));
                return Ok(taken == batch.num_rows());
            }
            FormatWriter::Csv { writer, header } => {
                *header = None;
                writer.write(&flat(batch)?)?;
            }
            FormatWriter::Json(writer) => writer.write(batch)?,
        }
        Ok(true)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Writing fails.
    pub fn finish(self) -> Result<(), ArrowError> {
        match self.inner {
            FormatWriter::Table { schema, mut batches, mut into, .. } => {
                if !schema.fields().is_empty() {
                    batches.push(RecordBatch::new_empty(schema));
                    writeln!(into, "{}", pretty_format_batches(&batches)?)?;
                }
                into.flush()?;
            }
            FormatWriter::Csv { mut writer, header } => {
                if let Some(schema) = header {
                    writer.write(&flat(&RecordBatch::new_empty(schema))?)?;
                }
                writer.into_inner().flush()?;
            }
            FormatWriter::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
        }
        Ok(())
    }
}

/// Converts columns of structs and lists to JSON text.
///
/// # Errors
/// JSON does not support a type.
pub fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        if !column.data_type().is_nested() {
            return Ok((field.clone(), column.clone()));
        }
        let texts: FieldRef = Arc::new(Field::new(field.name(), DataType::Utf8, true));
        Ok((texts, json_texts(field, column)?))
    });
    let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) =
        columns.collect::<Result<Vec<_>, ArrowError>>()?.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn json_texts(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(field, column, &options)?;
    let texts = (0..column.len()).map(|row| {
        column.is_valid(row).then(|| {
            let mut text = Vec::new();
            encoder.encode(row, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    Ok(Arc::new(StringArray::from_iter(texts)))
}

/// Whether writing failed because the reader closed the pipe.
pub fn is_closed(error: &ArrowError) -> bool {
    let ArrowError::IoError(_, error) = error else { return error.to_string().contains("Broken pipe") };
    error.kind() == io::ErrorKind::BrokenPipe
}

/// A writer of lines of JSON.
pub(crate) type Lines<W> = LineDelimitedWriter<W>;
