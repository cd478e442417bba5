//! Compares constraints, automata, vocabularies and compiled constraints with independent oracles.
//! No test needs a device.

mod automaton;
mod budgets;
mod clocks;
mod columns;
mod excerpts;
mod figures;
mod forced_text;
mod grammar;
mod hostile;
mod json_schema;
mod links;
mod messages;
mod modules;
mod regexes;
mod stack;
mod structural_tags;
mod threads;
mod tools;
mod vocabulary;
