//! Instances: the rules made from templates and parametric rules.
//!
//! A template with its arguments, or a rule with the value of its parameter, becomes a separate
//! rule. Equal instances are one rule, so recursion returns to the same rule. Only referenced
//! instances are made.

use super::super::form::Expression;
use super::lowering::{Instance, Key, Lowering, Value};
use super::tree::{Definition, Kind, Tree, Use};
use burn_dfa_common::Result;

/// Most instances of a grammar.
const MAX_INSTANCES: usize = 1 << 13;

/// Most characters and parts in the bodies of all instances.
const MAX_EXPANDED: usize = 1 << 22;

/// The cost of a part of a body.
const PART: usize = 16;

/// Most characters in the full display name of an instance.
const SHOWN: usize = 80;

impl<'a, 't> Lowering<'a, 't> {
    /// The value of the parameter of the current instance, if it has one.
    pub(super) fn parameter(&self) -> Option<u64> {
        self.instances.all[self.scope?].parameter
    }

    /// The value of a name.
    pub(super) fn resolve(&self, name: &'t str) -> Value<'a, 't> {
        let found = self.scope.and_then(|scope| {
            let instance = &self.instances.all[scope];
            let at = instance.definition.parameters.iter().position(|parameter| *parameter == name)?;
            Some(instance.values[at])
        });
        found.unwrap_or(Value::Name(name))
    }

    /// The definition that a name or an instance refers to.
    pub(super) fn meant(&self, tree: &'a Tree<'t>) -> Option<&'a Definition<'t>> {
        let name = match &tree.kind {
            Kind::Name(name) => name,
            Kind::Use(used) => used.name,
            _ => return None,
        };
        match self.resolve(name) {
            Value::Name(name) => self.known_definition(name),
            Value::Instance(number) => Some(self.instances.all[number].definition),
            Value::Text(_) => None,
        }
    }

    /// The instance of a template with arguments, or of a rule with the value of its parameter, as
    /// a part of a rule.
    pub(super) fn instance(&mut self, used: &'a Use<'t>, at: usize) -> Result<Expression> {
        let number = self.number_of(used, at)?;
        let name = self.instances.all[number].name.clone();
        Ok(self.builder.rule(&name))
    }

    /// The name of an instance.
    pub(super) fn instance_name(&self, number: usize) -> String {
        self.instances.all[number].name.clone()
    }

    fn number_of(&mut self, used: &'a Use<'t>, at: usize) -> Result<usize> {
        let Value::Name(name) = self.resolve(used.name) else {
            return Err(
                self.error(at, format!("`{}` stands for a part here and takes no arguments", used.name))
            );
        };
        let definition = self.definition(name, at)?;
        self.check_use(definition, used, at)?;
        let mut values = Vec::with_capacity(used.arguments.len());
        for argument in &used.arguments {
            values.push(match &argument.tree.kind {
                Kind::Name(name) => self.resolve(name),
                Kind::Use(inner) => Value::Instance(self.number_of(inner, argument.tree.at)?),
                _ => Value::Text(argument),
            });
        }
        let parameter = match used.step {
            None => None,
            Some(step) => Some(step.apply(self.parameter()).ok_or_else(|| self.without_parameter(at))?),
        };
        let keys = values.iter().map(Value::key).collect();
        let key = Key { definition: name, values: keys, parameter };
        if let Some(&number) = self.instances.numbers.get(&key) {
            return Ok(number);
        }
        let number = self.instances.all.len();
        if number == MAX_INSTANCES {
            let reason = format!(
                "templates and parameters stand for more than {MAX_INSTANCES} rules: say less of them, or let them come back to themselves"
            );
            return Err(self.error(at, reason));
        }
        let name = self.shown(name, &values, parameter);
        self.builder.meet(&name);
        self.instances.numbers.insert(key, number);
        self.instances.all.push(Instance { definition, values, parameter, name });
        Ok(number)
    }

    /// Checks that a template has as many arguments as parameters, and a parametric rule a value.
    fn check_use(&self, definition: &Definition<'_>, used: &Use<'_>, at: usize) -> Result<()> {
        let (name, wanted, given) = (definition.name, definition.parameters.len(), used.arguments.len());
        let reason = match used.step {
            Some(_) if !definition.parametric => {
                format!("`{name}` is not parametric: define it as `{name}::_`, or leave `::` out")
            }
            None if definition.parametric => {
                format!("`{name}` is parametric: give it a value, as in `{name}::0`")
            }
            None if wanted == 0 => format!("`{name}` is no template and takes no arguments"),
            None if wanted != given => format!("the template `{name}` takes {wanted} arguments, not {given}"),
            _ => return Ok(()),
        };
        Err(self.error(at, reason))
    }

    /// The unique display name of an instance.
    fn shown(&self, name: &str, values: &[Value<'a, 't>], parameter: Option<u64>) -> String {
        let mut shown = name.to_owned();
        for (at, value) in values.iter().enumerate() {
            shown.push_str(if at == 0 { "{" } else { ", " });
            shown.push_str(match value {
                Value::Text(argument) => argument.text,
                Value::Name(name) => name,
                Value::Instance(number) => &self.instances.all[*number].name,
            });
            if shown.len() > SHOWN {
                break;
            }
        }
        if !values.is_empty() {
            shown.push('}');
        }
        if let Some(parameter) = parameter {
            shown.push_str(&format!("::{parameter}"));
        }
        if shown.len() > SHOWN {
            let short: String = shown.chars().take(SHOWN).collect();
            return format!("{short}… #{}", self.instances.all.len());
        }
        shown
    }

    /// Adds the cost of a part with this many characters to the instance's body.
    pub(super) fn spend(&mut self, characters: usize, at: usize) -> Result<()> {
        if self.scope.is_none() {
            return Ok(());
        }
        self.instances.expanded += PART + characters;
        if self.instances.expanded > MAX_EXPANDED {
            let reason =
                "the rules that templates and parameters stand for are too large together: say less of them";
            return Err(self.error(at, reason));
        }
        Ok(())
    }

    pub(super) fn without_parameter(&self, at: usize) -> burn_dfa_common::error::Error {
        self.error(
            at,
            "the rule is not parametric, and this needs a parameter: define it with `::_` behind its name",
        )
    }
}
