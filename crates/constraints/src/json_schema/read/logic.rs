//! Reads the keywords that combine schemas for the same value.

use super::{Gathered, Reader};
use crate::json_schema::formula::Formula;
use crate::json_schema::json::{Json, Members};
use burn_dfa_common::Result;

impl<'a> Reader<'a> {
    pub(super) fn logic(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        for name in ["allOf", "anyOf", "oneOf"] {
            let Some(branches) = map.get(name) else { continue };
            let branches = match branches {
                Json::Array(branches) if !branches.is_empty() => branches,
                other => return Err(self.other_than(name, "a list of schemas, one at least", other)),
            };
            let mut formulas = Vec::with_capacity(branches.len());
            for (i, branch) in branches.iter().enumerate() {
                let read = self.beside(&[name, &i.to_string()], branch)?;
                formulas.push(read.formula);
                let condition = if name == "allOf" { Formula::TRUE } else { read.formula };
                gathered.evaluated.extend_if(read.evaluated, condition, &mut self.formulas);
            }
            let claim = match name {
                "allOf" => self.formulas.and(formulas),
                "anyOf" => self.formulas.or(formulas),
                _ => self.formulas.one(formulas),
            };
            self.claim(gathered, &[name], claim);
        }
        if let Some(schema) = map.get("not") {
            let read = self.beside(&["not"], schema)?;
            let claim = self.formulas.not(read.formula);
            self.claim(gathered, &["not"], claim);
        }
        self.condition(map, gathered)
    }

    /// `if`, `then` and `else`.
    fn condition(&mut self, map: &'a Members, gathered: &mut Gathered) -> Result<()> {
        let Some(condition) = self.keyword(map, "if") else { return Ok(()) };
        let condition = self.beside(&["if"], condition)?;
        gathered.evaluated.extend_if(condition.evaluated, condition.formula, &mut self.formulas);
        let otherwise = self.formulas.not(condition.formula);
        let mut branches = [Formula::TRUE; 2];
        for ((name, when), branch) in
            [("then", condition.formula), ("else", otherwise)].into_iter().zip(&mut branches)
        {
            if let Some(schema) = map.get(name) {
                let read = self.beside(&[name], schema)?;
                *branch = read.formula;
                gathered.evaluated.extend_if(read.evaluated, when, &mut self.formulas);
            }
        }
        let claim = self.formulas.choose(condition.formula, branches[0], branches[1]);
        self.claim(gathered, &["if"], claim);
        Ok(())
    }
}
