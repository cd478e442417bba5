//! A batch while it is generated: the model, and all that a step reads and writes.

use std::ops::Range;

use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor};

use super::batch::Batch;
use super::config::GenerationConfig;
use super::model::CausalLm;
use crate::error::{Error, Result};
use crate::processor::{
    Chain, DfaProcessor, InitContext, LogitsProcessor, MinNewTokens, MinP, Persistent, RepetitionPenalty,
    StepContext, Suppress, Temperature, TopK, TopP,
};
use crate::sampling::{Greedy, GumbelMax, Sampler};
use crate::vocabulary::Vocabulary;

/// What a [`GenerationConfig`] asks for besides the constraint, in the order in which it is applied.
pub(super) type Filters = Chain<
    Chain<
        Chain<
            Chain<
                Chain<Chain<Option<RepetitionPenalty>, Option<Suppress>>, Option<MinNewTokens>>,
                Option<Temperature>,
            >,
            Option<TopK>,
        >,
        Option<TopP>,
    >,
    Option<MinP>,
>;

/// The tensors of a session are the only handles of their buffers, so that [`step`](Self::step) writes all
/// of them in place and can be recorded.
pub(super) struct Session<'m, M: CausalLm> {
    model: &'m M,
    cache: M::Cache,
    chain: Chain<DfaProcessor, Filters>,
    state: <Chain<DfaProcessor, Filters> as LogitsProcessor>::State,
    /// Absent where tokens are chosen greedily.
    noise: Option<GumbelMax>,
    context: StepContext,
    /// The tokens of every step, `[slots, batch]`.
    log: Tensor<2, Int>,
    /// Slots of the cache and of the log.
    slots: usize,
}

impl<'m, M: CausalLm> Session<'m, M> {
    /// Reads the prompts of a checked batch and chooses the first token of every row; the cache has `slots`.
    pub(super) fn start(
        model: &'m M,
        vocabulary: &Vocabulary,
        batch: &Batch,
        config: &GenerationConfig,
        slots: usize,
    ) -> Result<Self> {
        let (device, width) = (model.device(), model.vocab_size());
        let chain = batch.constraint(config, width, &device)?.then(filters(config, vocabulary)?);
        let noise = match config.temperature {
            None => None,
            Some(temperature) => {
                let noise = GumbelMax::new(&batch.seeds(), width, &device)?;
                let here = if filtered(config) { 1.0 } else { temperature };
                Some(noise.with_temperature(here)?)
            }
        };
        let (prompt, padding) = batch.left_padded(&device);
        let state = chain.init(&InitContext { prompt: prompt.clone(), padding: padding.clone(), width });
        let (logits, cache) = model.prefill(prompt, padding, slots);
        chain.first().check(&logits)?;
        let context = before_the_first(batch.len(), width, &device);
        let log = Tensor::zeros([slots, batch.len()], (&device, DType::I32));
        let mut session = Self { model, cache, chain, state, noise, context, log, slots };
        session.choose(logits);
        Ok(session)
    }

    pub(super) fn model(&self) -> &'m M {
        self.model
    }

    /// Feeds the last tokens to the model and chooses the next ones.
    pub(super) fn step(&mut self) {
        let logits = self.model.step(self.context.tokens.clone(), &mut self.cache);
        self.choose(logits);
    }

    /// Chooses a token per row, and counts and logs it.
    fn choose(&mut self, logits: Tensor<2>) {
        let sampler: &dyn Sampler = match &self.noise {
            None => &Greedy,
            Some(noise) => noise,
        };
        self.chain.choose(&mut self.state, &mut self.context, logits, sampler);
        let StepContext { tokens, step } = &mut self.context;
        let row = tokens.clone().reshape([1, -1]);
        self.log.inplace(|log| log.select_assign(0, step.clone(), row, IndexingUpdateOp::Assign));
        step.assign(step.clone() + 1);
    }

    /// Reads the tokens of some steps, one row of the batch after the other within a step.
    pub(super) fn tokens(&self, steps: Range<usize>) -> Result<Vec<i32>> {
        let [_, batch] = self.log.dims();
        let tokens = self.log.clone().slice([steps, 0..batch]).try_into_data();
        let tokens = tokens.map_err(|error| Error::model(format!("tokens: {error}")))?;
        tokens.try_to_vec::<i32>().map_err(|error| Error::model(format!("tokens: {error:?}")))
    }
}

impl<M: CausalLm<Cache: Persistent>> Session<'_, M> {
    /// As [`start`](Self::start), for other requests and in the buffers of this session.
    pub(super) fn restart(&mut self, batch: &Batch) -> Result<()> {
        let (device, width) = (self.model.device(), self.model.vocab_size());
        batch.constrain(self.chain.first_mut())?;
        if let Some(noise) = &mut self.noise {
            noise.reseed(&batch.seeds());
        }
        let (prompt, padding) = batch.left_padded(&device);
        let init = InitContext { prompt: prompt.clone(), padding: padding.clone(), width };
        self.state.assign(self.chain.init(&init));
        let (logits, cache) = self.model.prefill(prompt, padding, self.slots);
        self.chain.first().check(&logits)?;
        self.cache.assign(cache);
        let context = before_the_first(batch.len(), width, &device);
        self.context.tokens.assign(context.tokens);
        self.context.step.assign(context.step);
        self.choose(logits);
        Ok(())
    }
}

/// Whether anything comes between the temperature and the sampler; where nothing does, the sampler applies
/// the temperature in its own pass.
pub(super) fn filtered(config: &GenerationConfig) -> bool {
    config.top_k.is_some() || config.top_p.is_some() || config.min_p.is_some()
}

pub(super) fn filters(config: &GenerationConfig, vocabulary: &Vocabulary) -> Result<Filters> {
    let least = config.min_new_tokens;
    let temperature = config.temperature.filter(|_| filtered(config));
    Ok(config
        .repetition_penalty
        .map(RepetitionPenalty::new)
        .transpose()?
        .then(
            (!config.suppress_tokens.is_empty())
                .then(|| Suppress::new(config.suppress_tokens.iter().copied())),
        )
        .then((least > 0).then(|| MinNewTokens::new(least, vocabulary)))
        .then(temperature.map(Temperature::new).transpose()?)
        .then(config.top_k.map(TopK::new).transpose()?)
        .then(config.top_p.map(TopP::new).transpose()?)
        .then(config.min_p.map(MinP::new).transpose()?))
}

/// The context of the first step.
fn before_the_first(batch: usize, width: usize, device: &Device) -> StepContext {
    StepContext {
        tokens: Tensor::full([batch], width as i32, (device, DType::I32)),
        step: Tensor::zeros([1], (device, DType::I32)),
    }
}
