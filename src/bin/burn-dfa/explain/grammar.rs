//! How a grammar is compiled, in words.

use burn_dfa::constraint::{CalledPart, GrammarReport, RuleUse};
use serde_json::json;

use crate::output::{Output, Result};

/// Prints the treatment of the rules, the called parts, and the maximum number of simultaneous
/// stacks.
pub fn print(out: &mut Output, report: &GrammarReport) -> Result<()> {
    if out.json {
        return as_json(out, report);
    }
    let strong = out.styles.strong;
    for (of, name) in [
        (RuleUse::Copied, "copied"),
        (RuleUse::Called, "called"),
        (RuleUse::Unused, "unused"),
        (RuleUse::Textless, "no text"),
    ] {
        let rules = report.rules.iter().filter(|rule| rule.1 == of).map(|rule| &*rule.0);
        let rules: Vec<&str> = rules.collect();
        if !rules.is_empty() {
            writeln!(out.to, "{strong}{name}{strong:#}: {}", rules.join(", "))?;
        }
    }
    for call in &report.calls {
        if let CalledPart::Between { rule, opens, closes } = call {
            let from = opens
                .as_ref()
                .map_or("from where it is entered".to_owned(), |opens| format!("behind {}", short(opens)));
            writeln!(out.to, "{strong}called{strong:#} in {rule}: {from}, up to {}", short(closes))?;
        }
    }
    if !report.calls.is_empty() {
        let (stacks, max) = (report.stacks, report.max_stacks);
        let said = match stacks {
            1 => "the text read so far tells the stack".to_owned(),
            _ => format!("ways to read the same text have up to {stacks} stacks at once, of {max} at most"),
        };
        writeln!(out.to, "{strong}stacks{strong:#} {stacks}: {said}")?;
    }
    Ok(())
}

fn as_json(out: &mut Output, report: &GrammarReport) -> Result<()> {
    for (rule, of) in &report.rules {
        let treatment = match of {
            RuleUse::Copied => "copied",
            RuleUse::Called => "called",
            RuleUse::Unused => "unused",
            RuleUse::Textless => "textless",
            _ => return Err("a use of a rule that this tool does not know".into()),
        };
        writeln!(out.to, "{}", json!({"rule": rule, "treatment": treatment}))?;
    }
    for call in &report.calls {
        if let CalledPart::Between { rule, opens, closes } = call {
            let line = json!({"rule": rule, "treatment": "part called", "opens": opens, "closes": closes});
            writeln!(out.to, "{line}")?;
        }
    }
    let line = json!({"rule": null, "treatment": "stacks", "stacks": report.stacks, "max_stacks": report.max_stacks});
    Ok(writeln!(out.to, "{line}")?)
}

/// Maximum number of shown characters of a part.
const SHOWN: usize = 60;

fn short(part: &str) -> String {
    match part.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &part[..at]),
        None => part.to_owned(),
    }
}
