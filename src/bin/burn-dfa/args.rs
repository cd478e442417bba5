//! Arguments of several subcommands: a constraint, a tokenizer.

use std::path::{Path, PathBuf};

use burn_dfa::constraint::Whitespace;
use burn_dfa::vocabulary::ModelFiles;
use burn_dfa::{Constraint, Limits, TokenId, Vocabulary, cli};
use clap::Args;
use serde_json::Value;

use crate::output::Result;

/// The constraint: one of these.
#[derive(Args)]
#[command(mut_group("constraint", |group| group.required(true)))]
pub struct ConstraintArgs {
    #[command(flatten)]
    one: cli::ConstraintArgs,
}

impl ConstraintArgs {
    /// The JSON schema, if given as a schema, and the constraint of the schema, grammar or
    /// structural tag.
    pub fn read_with_schema(&self) -> Result<(Option<Value>, burn_dfa::Result<Constraint>)> {
        if let Some(text) = self.one.read_schema()? {
            let constraint = Constraint::json_schema_from_str_with(&text, &self.one.json_options());
            return Ok((serde_json::from_str(&text).ok(), constraint));
        }
        let refusable = match self.one.read_grammar()? {
            None => self.one.read_structural_tag()?,
            grammar => grammar,
        };
        match refusable {
            Some(constraint) => Ok((None, constraint)),
            None => Ok((None, Ok(self.read()?))),
        }
    }

    /// The file of `--grammar` or `--structural-tag`.
    pub fn grammar(&self) -> Option<&Path> {
        self.one.grammar().or(self.one.structural_tag())
    }

    /// As [`cli::ConstraintArgs::warn`].
    pub fn warn(&self, constraint: &Constraint, limits: &Limits, drafts: bool, json: bool) {
        self.one.warn(constraint, limits, drafts, json);
    }

    pub fn read(&self) -> Result<Constraint> {
        self.one.read()?.ok_or_else(|| format!("{} asks for free text: give a constraint", self.one).into())
    }

    /// As [`read`](Self::read), with any white space in JSON unless a style is named.
    pub fn read_with_any_whitespace(&self) -> Result<Constraint> {
        let mut one = self.one.clone();
        one.or_whitespace(Whitespace::FLEXIBLE);
        Self { one }.read()
    }
}

/// The tokenizer, and the ids that end a sequence.
#[derive(Args)]
pub struct TokenizerArgs {
    /// A tokenizer.json, a folder that holds one, or a GGUF file.
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Ids that end a sequence. Default: the ids named in the folder's files, or for a
    /// tokenizer.json alone its known end-of-sequence tokens.
    #[arg(long, value_name = "ID", value_delimiter = ',', requires = "tokenizer")]
    eos: Vec<u32>,
}

impl TokenizerArgs {
    /// Whether a tokenizer is named.
    pub fn is_some(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// The vocabulary with its end-of-sequence tokens.
    pub fn read(&self) -> Result<Vocabulary> {
        let path = self.path()?;
        let named = ["generation_config.json", "config.json", "tokenizer_config.json"];
        let names_ends = ModelFiles::is_gguf(path) || named.iter().any(|file| path.join(file).exists());
        if self.eos.is_empty() && names_ends {
            return Ok(Vocabulary::from_folder(path)?);
        }
        let vocabulary = self.read_any()?;
        if !vocabulary.eos().is_empty() {
            return Ok(vocabulary);
        }
        let ends = vocabulary.known_ends();
        if ends.is_empty() {
            return Err(
                "no token is known to end a sequence: give --eos, or the model's folder as --tokenizer"
                    .into(),
            );
        }
        let names = ends.iter().map(|&id| {
            format!("{} {}", id.0, String::from_utf8_lossy(vocabulary.content(id).unwrap_or_default()))
        });
        eprintln!(
            "note: these tokens end a sequence: {}; --eos, or the model's folder as --tokenizer, names others",
            names.collect::<Vec<_>>().join(", ")
        );
        Ok(vocabulary.with_eos(ends)?)
    }

    fn path(&self) -> Result<&Path> {
        Ok(self.tokenizer.as_deref().ok_or("no tokenizer is named: give --tokenizer")?)
    }

    /// The vocabulary, with end-of-sequence tokens only if given.
    pub fn read_any(&self) -> Result<Vocabulary> {
        let path = self.path()?;
        let vocabulary = match path.is_dir() || ModelFiles::is_gguf(path) {
            true => Vocabulary::from_files_without_eos(&ModelFiles::read(path)?)?,
            false => Vocabulary::from_tokenizer_file(path)?,
        };
        Ok(vocabulary.with_eos(self.eos.iter().map(|&id| TokenId(id)))?)
    }
}
