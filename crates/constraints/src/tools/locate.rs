//! Finds the tool of a part of the structural tag.

use super::Tools;
use super::reply::Role;

impl Tools {
    /// The number of the tool whose parameters caused an [error](crate::Error::pointer) of the
    /// constraint, and the JSON pointer into the parameters; `None` for another part.
    ///
    /// ```
    /// use burn_dfa_tokens::constraint::{Tool, Tools};
    /// use serde_json::json;
    ///
    /// let wrong = json!({"type": "object", "properties": {"a": {"type": "nothing"}}});
    /// let tools = Tools::new([Tool::new("now"), Tool::new("then").with_parameters(wrong)])?;
    /// let error = tools.to_constraint().unwrap_err();
    /// assert_eq!(tools.locate(error.pointer().unwrap()), Some((1, "/properties/a/type")));
    /// # Ok::<(), burn_dfa_tokens::Error>(())
    /// ```
    pub fn locate<'p>(&self, pointer: &'p str) -> Option<(usize, &'p str)> {
        let (of_tag, within) = pointer.split_once("/content/json_schema")?;
        let lowered = self.lower().ok()?;
        let tag = serde_json::to_value(&lowered.tag).ok()?;
        match lowered.roles.get(tag.pointer(of_tag)?["begin"].as_str()?)? {
            Role::Call(number) => Some((*number, within)),
            Role::Content | Role::Reasoning => None,
        }
    }
}
