//! What several subcommands take: a constraint, a tokenizer.

use std::path::{Path, PathBuf};

use burn_dfa::{Constraint, TokenId, Vocabulary, cli};
use clap::Args;
use serde::de::IgnoredAny;
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
    /// The JSON schema, where one is given as such, and what is made of it, of a grammar or of a structural tag.
    pub fn read_with_schema(&self) -> Result<(Option<Value>, burn_dfa::Result<Constraint>)> {
        if let Some(path) = self.one.schema() {
            let text = cli::text(path)?;
            // Of any depth, unlike a value.
            serde_json::from_str::<IgnoredAny>(&text)
                .map_err(|error| format!("{} is not JSON: {error}", path.display()))?;
            return Ok((serde_json::from_str(&text).ok(), Constraint::json_schema_from_str(&text)));
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

    pub fn read(&self) -> Result<Constraint> {
        self.one.read()?.ok_or_else(|| format!("{} asks for free text", self.one).into())
    }
}

/// Special tokens that end a sequence in the models in use.
const ENDS: [&str; 7] =
    ["</s>", "<eos>", "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|end|>"];

/// The tokenizer, and the ids that end a sequence.
#[derive(Args)]
pub struct TokenizerArgs {
    /// A tokenizer.json, or a folder that holds one.
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Ids that end a sequence; without it those that the folder's files name, or for a file alone its special
    /// tokens that are known to be ends.
    #[arg(long, value_name = "ID", value_delimiter = ',', requires = "tokenizer")]
    eos: Vec<u32>,
}

impl TokenizerArgs {
    /// Whether a tokenizer is named.
    pub fn is_some(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// The vocabulary with its ends.
    pub fn read(&self) -> Result<Vocabulary> {
        let path = self.path()?;
        let named = ["generation_config.json", "config.json", "tokenizer_config.json"];
        if self.eos.is_empty() && named.iter().any(|file| path.join(file).exists()) {
            return Ok(Vocabulary::from_folder(path)?);
        }
        let vocabulary = self.read_any()?;
        if !vocabulary.eos().is_empty() {
            return Ok(vocabulary);
        }
        let ends: Vec<TokenId> = (0..vocabulary.len() as u32)
            .map(TokenId)
            .filter(|&id| {
                let name = vocabulary.content(id).unwrap_or_default();
                vocabulary.bytes(id).is_none() && ENDS.iter().any(|end| end.as_bytes() == name)
            })
            .collect();
        if ends.is_empty() {
            return Err("which ids end a sequence? give --eos, or the model's folder as --tokenizer".into());
        }
        Ok(vocabulary.with_eos(ends)?)
    }

    fn path(&self) -> Result<&Path> {
        Ok(self.tokenizer.as_deref().ok_or("name a tokenizer with --tokenizer")?)
    }

    /// The vocabulary, with ends only where they are given.
    pub fn read_any(&self) -> Result<Vocabulary> {
        let path = self.path()?;
        let file = if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() };
        Ok(Vocabulary::from_tokenizer_file(file)?.with_eos(self.eos.iter().map(|&id| TokenId(id)))?)
    }
}
