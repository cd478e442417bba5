//! Rules: copied, looped or called.

use super::super::brackets::Position;
use super::super::flat::ExprId;
use super::{Context, Emitter, Link, ProcedureKey, sorted};
use burn_dfa_automata::{FastMap, TransitionNetwork};
use burn_dfa_common::Result;

impl Emitter<'_, '_> {
    /// The start of the non-empty texts of a rule before `next`.
    pub(super) fn rule(&mut self, rule: usize, next: u32, chain: u32, outermost: bool) -> Result<u32> {
        let body = self.flat.bodies[rule];
        if !self.flat.is_productive(body) {
            return Ok(TransitionNetwork::DEAD);
        }
        if let Some(link) = self.link(chain, rule) {
            self.chains[link as usize].branches.push(next);
            return Ok(TransitionNetwork::DEAD);
        }
        let left = self.left_scc_of[rule];
        let of_chain = self.chains[chain as usize].rule;
        let chain = if chain != 0 && left != 0 && self.left_scc_of[of_chain] == left { chain } else { 0 };
        if let Some(&known) = self.starts.get(&(rule, next, chain, outermost)) {
            return Ok(known);
        }
        let position = Position { outermost, ..self.brackets.position(rule) };
        let copies = |&(open, before, outer): &(usize, u32, bool)| {
            open == rule && before != next && outer == outermost
        };
        if position.scc != 0 && self.active.iter().any(copies) && !self.joins_loop(rule, next, outermost) {
            let enter = self.procedure(ProcedureKey::Rule(rule))?;
            let after = self.behind_procedure(next)?;
            let call = self.network.call(enter, &[after])?;
            self.starts.insert((rule, next, chain, outermost), call);
            return Ok(call);
        }
        let origin = self.network.set_origin(rule as u32);
        let start = self.network.reserve()?;
        self.starts.insert((rule, next, chain, outermost), start);
        self.active.push((rule, next, outermost));
        let begins = if left != 0 && self.comes_back(rule, chain) {
            let behind = self.network.reserve()?;
            if chain == 0 {
                // A reference to the rule before its own continuation is the same copy.
                self.starts.insert((rule, behind, 0, outermost), start);
            }
            let link = self.chains.len() as u32;
            self.chains.push(Link { before: chain, rule, branches: vec![next] });
            let context = Context { chain: link, position };
            let begins = self.some(body, behind, context)?;
            let branches = std::mem::take(&mut self.chains[link as usize].branches);
            self.network.fill(behind, &sorted(branches))?;
            begins
        } else {
            self.some(body, next, Context { chain, position })?
        };
        self.network.fill(start, &[begins])?;
        self.active.pop();
        self.network.set_origin(origin);
        Ok(start)
    }

    /// The link of a chain for a rule.
    fn link(&self, mut chain: u32, rule: usize) -> Option<u32> {
        while chain != 0 {
            let link = &self.chains[chain as usize];
            if link.rule == rule {
                return Some(chain);
            }
            chain = link.before;
        }
        None
    }

    /// Whether `next` is a loop at the end of the rule, and the rule is open once: in
    /// `x ::= "a" ("b" | "c" x)*` the copy within the loop ends in this loop, and refers to no
    /// third copy.
    fn joins_loop(&self, rule: usize, next: u32, outermost: bool) -> bool {
        let open = self.active.iter().filter(|&&(open, _, outer)| open == rule && outer == outermost).count();
        let ends_in = |&(inner, _): &(ExprId, u32)| self.flat.ends_in(self.flat.bodies[rule], inner);
        open == 1 && self.loop_of.get(&next).is_some_and(ends_in)
    }

    /// Whether a rule may begin with itself, but not through the rules of a chain.
    fn comes_back(&self, rule: usize, chain: u32) -> bool {
        let mut seen: FastMap<usize, ()> = FastMap::default();
        let mut rest = vec![rule];
        while let Some(at) = rest.pop() {
            for &corner in &self.corners[at] {
                if corner == rule {
                    return true;
                }
                let within = self.left_scc_of[corner] == self.left_scc_of[rule];
                if within && self.link(chain, corner).is_none() && seen.insert(corner, ()).is_none() {
                    rest.push(corner);
                }
            }
        }
        false
    }
}
