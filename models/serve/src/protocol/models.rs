//! `/v1/models`, `/health`, `/version`.

use serde::Serialize;
use utoipa::ToSchema;

/// The models of the server.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`.
    pub object: &'static str,
    /// One.
    pub data: Vec<ModelCard>,
}

/// A model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelCard {
    /// Its name.
    pub id: String,
    /// `model`.
    pub object: &'static str,
    /// The start of the server, in seconds since 1970.
    pub created: u64,
    /// `burn-dfa`.
    pub owned_by: &'static str,
    /// Tokens of prompt and answer together.
    pub max_model_len: usize,
}

/// The version of the server.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Version {
    /// The version.
    pub version: &'static str,
}
