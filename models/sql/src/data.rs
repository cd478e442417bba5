//! Example data: sentences with their records.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_dfa_tiny::generator::{Generator, Kind, Split};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::output::{Lines, flat};
use crate::shape::Shape;

/// Rows of a batch, and of a group of a Parquet file: the units of different tasks.
const ROWS: usize = 250;

/// The format of data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// CSV with a header; lists are JSON text.
    Csv,
    /// Parquet, in groups of 250 rows.
    Parquet,
    /// A line of JSON for each row.
    Json,
}

impl FileFormat {
    /// The extension of the files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Json => "json",
        }
    }
}

/// An error of writing files.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The name of the table of a kind of records.
pub fn table_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Person => "people",
        Kind::Order => "orders",
        Kind::Event => "events",
        Kind::Team => "teams",
    }
}

/// Writes `count` held-out sentences of the embedded model's generator to a folder: a table for
/// each kind, with the sentence in the column `text` and the fields of its true record in further
/// columns. Returns the files with their numbers of rows.
///
/// # Errors
/// The folder is not writable.
pub fn generate(
    folder: &Path,
    format: FileFormat,
    seed: u64,
    count: u64,
) -> Result<Vec<(PathBuf, usize)>, Failure> {
    std::fs::create_dir_all(folder)?;
    let mut tables = Vec::new();
    for kind in Kind::ALL {
        tables.push(Table::create(folder, kind, format)?);
    }
    let generator = Generator::new(seed);
    for index in 0..count {
        let example = generator.example(Split::HeldOut, index);
        let of_kind = |table: &&mut Table| table.kind == example.kind;
        let table = tables.iter_mut().find(of_kind).expect("there is one for each kind");
        table.add(example.prompt, serde_json::from_str(&example.record)?)?;
    }
    tables.into_iter().map(Table::finish).collect()
}

/// An output file.
struct Table {
    kind: Kind,
    path: PathBuf,
    schema: Arc<Schema>,
    shape: Shape,
    texts: Vec<String>,
    records: Vec<Value>,
    rows: usize,
    file: Sink,
}

enum Sink {
    Csv(csv::Writer<BufWriter<File>>),
    Parquet(ArrowWriter<BufWriter<File>>),
    Json(Lines<BufWriter<File>>),
}

impl Table {
    fn create(folder: &Path, kind: Kind, format: FileFormat) -> Result<Self, Failure> {
        let schema = burn_dfa_tiny::schema(kind.name()).ok_or("every kind has a schema")?;
        let shape = Shape::of(&serde_json::from_str(schema.json)?);
        let DataType::Struct(fields) = shape.data_type() else { return Err("records are objects".into()) };
        let text: Arc<Field> = Arc::new(Field::new("text", DataType::Utf8, false));
        let schema = Arc::new(Schema::new([text].iter().chain(&fields).cloned().collect::<Vec<_>>()));
        let path = folder.join(format!("{}.{}", table_of(kind), format.extension()));
        let file = BufWriter::new(File::create(&path)?);
        let file = match format {
            FileFormat::Csv => Sink::Csv(csv::WriterBuilder::new().build(file)),
            FileFormat::Parquet => {
                let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROWS)).build();
                Sink::Parquet(ArrowWriter::try_new(file, schema.clone(), Some(properties))?)
            }
            FileFormat::Json => Sink::Json(Lines::new(file)),
        };
        Ok(Self { kind, path, schema, shape, texts: Vec::new(), records: Vec::new(), rows: 0, file })
    }

    fn add(&mut self, text: String, record: Value) -> Result<(), Failure> {
        self.texts.push(text);
        self.records.push(record);
        if self.texts.len() == ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let (texts, records) = (std::mem::take(&mut self.texts), std::mem::take(&mut self.records));
        self.rows += texts.len();
        let records = self.shape.array(&records.iter().map(Some).collect::<Vec<_>>())?;
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let columns = [texts].iter().chain(records.as_struct().columns()).cloned().collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        match &mut self.file {
            Sink::Csv(writer) => writer.write(&flat(&batch)?)?,
            Sink::Parquet(writer) => writer.write(&batch)?,
            Sink::Json(writer) => writer.write(&batch)?,
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(PathBuf, usize), Failure> {
        self.write()?;
        match self.file {
            Sink::Csv(writer) => writer.into_inner().flush()?,
            Sink::Parquet(writer) => _ = writer.close()?,
            Sink::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
        }
        Ok((self.path, self.rows))
    }
}
