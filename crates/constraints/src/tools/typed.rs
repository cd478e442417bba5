//! The variants of a Rust enum as tools.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::variants::variants;
use super::{Call, Tools};
use crate::typed::{narrowed, schema_of};
use burn_dfa_common::{Error, Result};

impl Tools {
    /// A tool for each variant of an enum, tagged externally or internally: its name as serde
    /// spells it, its documentation, and its fields as arguments. [`Call::to_enum`] reads calls of
    /// these tools.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::Tools;
    ///
    /// #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
    /// #[serde(rename_all = "snake_case")]
    /// enum Ask {
    ///     /// What the weather is like.
    ///     Weather { city: String },
    ///     Now,
    /// }
    ///
    /// let tools = Tools::from_type::<Ask>()?;
    /// let reply = tools.read(r#"{"name": "weather", "arguments": {"city": "Bern"}}"#)?;
    /// assert_eq!(reply.calls[0].to_enum::<Ask>()?, Ask::Weather { city: "Bern".into() });
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::Schema`](crate::ErrorKind::Schema): the type is not such an enum, or contains
    ///   itself in its fields;
    /// - [`ErrorKind::Request`](crate::ErrorKind::Request): see [`new`](Self::new), for example a
    ///   variant without an object.
    pub fn from_type<T: JsonSchema>() -> Result<Self> {
        let found = variants(&narrowed(&schema_of::<T>()))?;
        Self::new(found.into_iter().map(|variant| variant.tool))
    }
}

impl Call {
    /// The call as a variant of the enum of [`Tools::from_type`].
    ///
    /// # Errors
    /// - [`ErrorKind::Schema`](crate::ErrorKind::Schema): see [`Tools::from_type`];
    /// - [`ErrorKind::Output`](crate::ErrorKind::Output): no variant has the name, or it does not
    ///   read the arguments.
    pub fn to_enum<T: JsonSchema + DeserializeOwned>(&self) -> Result<T> {
        let found = variants(&narrowed(&schema_of::<T>()))?;
        let variant = found.iter().find(|variant| variant.tool.name == self.name).ok_or_else(|| {
            Error::output(format!("{} has no variant {:?}", std::any::type_name::<T>(), self.name))
        })?;
        serde_json::from_value(variant.value(self)?)
            .map_err(|error| Error::output(format!("the call of {:?}: {error}", self.name)))
    }
}
