//! [`FolderProblem`]: the reason why a folder, or a file in it, cannot be loaded.

use std::fmt;
use std::path::{Path, PathBuf};

/// The file of an unsharded checkpoint.
pub(crate) const SINGLE: &str = "model.safetensors";
/// The index of a sharded checkpoint.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// The reason why a folder, or a file in it, cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderProblem {
    /// The path does not exist.
    Missing,
    /// The path is a file, and no GGUF file.
    File,
    /// A folder without files.
    Empty,
    /// A folder of a download cache, which holds the model in a subfolder.
    Cache {
        /// The folder of the model.
        snapshot: PathBuf,
    },
    /// The folder lacks the weights or the configuration of a model.
    Lacks {
        /// The missing file.
        file: &'static str,
        /// A file of another format in the folder.
        instead: Option<String>,
    },
    /// The folder lacks shards that the index names.
    Shards {
        /// The first missing shard.
        first: String,
        /// The number of missing shards.
        missing: usize,
        /// The number of shards in the index.
        of: usize,
    },
    /// The file is a pointer of Git LFS.
    Pointer,
    /// The file is a page or a message of a server.
    Answer {
        /// The beginning of the file.
        text: String,
    },
    /// Weights of an adapter, which are added to the weights of another model.
    Adapter {
        /// The other model, if the adapter names it.
        base: Option<String>,
    },
    /// A pipeline of several models, such as an image generator.
    Pipeline,
}

impl fmt::Display for FolderProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "no such folder or file: download the model first, as with `hf download ORGANISATION/NAME --local-dir FOLDER`, \
                 and name that folder",
            ),
            Self::File => f.write_str(
                "is a file, and no GGUF file: name a GGUF file, or the folder that holds config.json, tokenizer.json and \
                 model.safetensors",
            ),
            Self::Empty => f.write_str("is empty: download the model into it"),
            Self::Cache { snapshot } => {
                write!(f, "is the cache of a download: name the folder {} in it", snapshot.display())
            }
            Self::Lacks { file, instead } => lacks(f, file, instead.as_deref()),
            Self::Shards { first, missing, of } => {
                write!(f, "{first} is not there, as are {missing} of the {of} files that {INDEX} names: go on with the download")
            }
            Self::Pointer => f.write_str(
                "is a pointer of Git LFS, not the file itself: run `git lfs pull` in the folder, or download the file",
            ),
            Self::Answer { text } => write!(
                f,
                "holds the answer of a server instead of the file, {text:?}: where access to the model is restricted, ask \
                 for it on the model's page and log in with `hf auth login`; then download the file again"
            ),
            Self::Adapter { base } => {
                f.write_str("holds an adapter, not a model: merge it into ")?;
                match base {
                    Some(base) => write!(f, "{base:?}")?,
                    None => f.write_str("the model it was trained on")?,
                }
                f.write_str(" with `merge_and_unload` of the Python package peft, and `save_pretrained`")
            }
            Self::Pipeline => f.write_str(
                "holds a pipeline of several models: a decoder-only language model is needed, in a folder of its own",
            ),
        }
    }
}

fn lacks(f: &mut fmt::Formatter<'_>, file: &str, instead: Option<&str>) -> fmt::Result {
    match instead {
        None => write!(f, "holds no {file}: download all files of the model"),
        Some(other) => {
            write!(f, "holds {other}, but no {file}: ")?;
            let extension =
                Path::new(other).extension().and_then(|extension| extension.to_str()).unwrap_or("");
            f.write_str(match (file, extension) {
                ("tokenizer.json", _) if other == "tekken.json" => {
                    "write one with `convert_tekken_tokenizer(\"FOLDER/tekken.json\").save_pretrained(\"FOLDER\")` of \
                     `transformers.integrations.mistral`, which needs the Python packages transformers and mistral-common"
                }
                ("tokenizer.json", _) => {
                    "write one with `AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)` of the Python package \
                     transformers"
                }
                (_, "gguf") => "name that file itself, which is a whole model",
                (SINGLE, "bin" | "pt") => {
                    "write one with `AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)` of the Python \
                     package transformers"
                }
                (SINGLE, "safetensors") => {
                    "a file of one shard, or of another name, is not enough; download all files of the model"
                }
                _ => "download the model in the format of transformers",
            })
        }
    }
}
