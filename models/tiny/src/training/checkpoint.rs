//! Checkpoints: parameters, optimizer state and progress, in a separate folder.
//!
//! Each checkpoint is written under new names; `progress.json`, which names the step, is replaced
//! last and atomically, so an interrupted run still finds the previous checkpoint.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::ModuleOptimizer;
use serde::{Deserialize, Serialize};

use super::Error;

/// The progress of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// Input tokens seen, without padding.
    pub tokens: u64,
    /// Seconds spent.
    pub seconds: f64,
    /// Smoothed loss per target token.
    pub loss: f64,
}

/// A folder with the last checkpoint of a run.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    folder: PathBuf,
}

impl Checkpoint {
    /// The checkpoint of this folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The progress at the last checkpoint, if there is one.
    pub fn progress(&self) -> Result<Option<Progress>, Error> {
        let path = self.folder.join("progress.json");
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&std::fs::read(path)?)?))
    }

    /// Writes a checkpoint and removes the previous one.
    pub fn save<M: Module>(
        &self,
        model: &M,
        optimizer: &ModuleOptimizer,
        progress: &Progress,
    ) -> Result<(), Error> {
        std::fs::create_dir_all(&self.folder)?;
        let before = self.progress()?;
        model.clone().save_file(self.model(progress.step))?;
        optimizer.save(self.optimizer(progress.step))?;
        let temporary = self.folder.join("progress.json.new");
        std::fs::write(&temporary, serde_json::to_vec_pretty(progress)?)?;
        std::fs::rename(&temporary, self.folder.join("progress.json"))?;
        if let Some(before) = before.filter(|before| before.step != progress.step) {
            for path in [self.model(before.step), self.optimizer(before.step)] {
                std::fs::remove_file(path).ok();
            }
        }
        Ok(())
    }

    /// Loads the parameters of the last checkpoint into `model`.
    pub fn load_model<M: Module>(&self, model: M) -> Result<M, Error> {
        let step = self.step()?;
        Ok(model.try_load_file(self.model(step))?)
    }

    /// Loads the optimizer state of the last checkpoint.
    pub fn load_optimizer(&self, optimizer: ModuleOptimizer) -> Result<ModuleOptimizer, Error> {
        let step = self.step()?;
        Ok(optimizer.load(self.optimizer(step))?)
    }

    fn step(&self) -> Result<usize, Error> {
        let folder = self.folder.display();
        let progress = self.progress()?;
        Ok(progress.ok_or_else(|| format!("no checkpoint in {folder}"))?.step)
    }

    fn model(&self, step: usize) -> PathBuf {
        numbered(&self.folder, "model", step)
    }

    fn optimizer(&self, step: usize) -> PathBuf {
        numbered(&self.folder, "optimizer", step)
    }
}

fn numbered(folder: &Path, name: &str, step: usize) -> PathBuf {
    folder.join(format!("{name}-{step:06}.bpk"))
}
