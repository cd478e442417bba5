//! A baseline of earlier counts, and the counts that got worse.

use std::collections::BTreeMap;
use std::path::Path;

use burn_dfa::Vocabulary;
use serde::{Deserialize, Serialize};

use super::summary::Summary;
use crate::output::Result;

/// The counts of several files for one vocabulary.
#[derive(Serialize, Deserialize)]
pub struct Baseline {
    vocabulary: String,
    files: BTreeMap<String, Counts>,
}

/// The counts of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    rows: usize,
    passing: usize,
    invalid_accepted: usize,
    valid_rejected: usize,
    split: usize,
    panicked: usize,
    not_json: usize,
    refused: usize,
    over_limit: usize,
    /// `None` in an old file without this count.
    #[serde(default)]
    unspelled: Option<usize>,
}

impl From<&Summary> for Counts {
    fn from(summary: &Summary) -> Self {
        Self {
            rows: summary.rows,
            passing: summary.passing,
            invalid_accepted: summary.invalid_accepted,
            valid_rejected: summary.valid_rejected,
            split: summary.split,
            panicked: summary.panicked,
            not_json: summary.not_json,
            refused: summary.refused,
            over_limit: summary.over_limit,
            unspelled: Some(summary.unspelled),
        }
    }
}

impl Baseline {
    pub fn new(vocabulary: &Vocabulary, summaries: &[(String, Summary)]) -> Self {
        let files = summaries.iter().map(|(name, summary)| (name.clone(), summary.into())).collect();
        Self { vocabulary: vocabulary.fingerprint().to_string(), files }
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?)
    }

    /// Reads the counts, which must be of `vocabulary`.
    pub fn read(path: &Path, vocabulary: &Vocabulary) -> Result<Self> {
        let path = path.display();
        let text =
            std::fs::read_to_string(path.to_string()).map_err(|e| format!("cannot read {path}: {e}"))?;
        let baseline: Self =
            serde_json::from_str(&text).map_err(|e| format!("{path} is no baseline: {e}"))?;
        let fingerprint = vocabulary.fingerprint().to_string();
        if baseline.vocabulary != fingerprint {
            return Err(format!("{path} is of vocabulary {}, not {fingerprint}", baseline.vocabulary).into());
        }
        Ok(baseline)
    }

    /// Every count that got worse, false accepts first.
    pub fn worse(&self, summaries: &[(String, Summary)]) -> Result<Vec<String>> {
        let mut worse = Vec::new();
        for (name, summary) in summaries {
            let then = self.files.get(name);
            let then = then.ok_or_else(|| format!("the baseline has no {name}: write it with --update"))?;
            let now = Counts::from(summary);
            if now.rows != then.rows {
                let (now, then) = (now.rows, then.rows);
                return Err(format!(
                    "{name}: {now} rows, {then} in the baseline: write it again with --update"
                )
                .into());
            }
            let counts = [
                ("invalid_accepted", then.invalid_accepted, now.invalid_accepted),
                ("not_json", then.not_json, now.not_json),
                ("split", then.split, now.split),
                ("panicked", then.panicked, now.panicked),
                ("failing", then.rows.saturating_sub(then.passing), now.rows.saturating_sub(now.passing)),
                ("valid_rejected", then.valid_rejected, now.valid_rejected),
                ("refused", then.refused, now.refused),
                ("over_limit", then.over_limit, now.over_limit),
                ("unspelled", then.unspelled.unwrap_or(usize::MAX), summary.unspelled),
            ];
            let risen = counts.iter().enumerate().filter(|(_, (_, then, now))| now > then);
            worse.extend(
                risen.map(|(rank, (what, then, now))| (rank, format!("{name}: {what} {then} → {now}"))),
            );
        }
        worse.sort_by_key(|&(rank, _)| rank);
        Ok(worse.into_iter().map(|(_, line)| line).collect())
    }
}
