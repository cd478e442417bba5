//! The variants of a Rust enum as tools.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::variants::variants;
use super::{Call, Tools};
use crate::constraint::typed::{narrowed, schema_of};
use crate::error::{Error, Result};

impl Tools {
    /// A tool for each variant of an enum, which is tagged externally or internally: its name as serde spells it, its
    /// documentation, and its fields as arguments. [`Call::to_enum`] reads calls of them.
    ///
    /// ```
    /// use burn_dfa::constraint::Tools;
    ///
    /// #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
    /// #[serde(rename_all = "snake_case")]
    /// enum Ask {
    ///     /// What the weather is like.
    ///     Weather { city: String },
    ///     Now,
    /// }
    ///
    /// let tools = Tools::of::<Ask>()?;
    /// let reply = tools.read(r#"{"name": "weather", "arguments": {"city": "Bern"}}"#)?;
    /// assert_eq!(reply.calls[0].to_enum::<Ask>()?, Ask::Weather { city: "Bern".into() });
    /// # Ok::<(), burn_dfa::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::is_schema`]: the type is no such enum, or has itself among its fields;
    /// - [`Error::is_request`]: as [`new`](Self::new), such as a variant that holds no object.
    pub fn of<T: JsonSchema>() -> Result<Self> {
        let found = variants(&narrowed(&schema_of::<T>()))?;
        Self::new(found.into_iter().map(|variant| variant.tool))
    }
}

impl Call {
    /// The call as a variant of the enum of which the [tools](Tools::of) are.
    ///
    /// # Errors
    /// - [`Error::is_schema`]: as [`Tools::of`];
    /// - [`Error::is_output`]: no variant has the name, or it does not read the arguments.
    pub fn to_enum<T: JsonSchema + DeserializeOwned>(&self) -> Result<T> {
        let found = variants(&narrowed(&schema_of::<T>()))?;
        let variant = found.iter().find(|variant| variant.tool.name == self.name).ok_or_else(|| {
            Error::output(format!("{} has no variant {:?}", std::any::type_name::<T>(), self.name))
        })?;
        serde_json::from_value(variant.value(self)?)
            .map_err(|error| Error::output(format!("the call of {:?}: {error}", self.name)))
    }
}
