"""Constrains a Hugging Face model with an artifact of burn-dfa, on any torch device, only by indexing.

    python constrain.py MODEL ARTIFACT [--prompt TEXT] [--max-new-tokens N] [--device DEVICE] [--sample SEED]
"""

import argparse

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor

DEAD, DONE, NEVER = 0, 1, 0
NO_PATH = torch.iinfo(torch.int32).max


class CompiledConstraint(LogitsProcessor):
    """Masks illegal tokens for one batch of greedy decoding or sampling (beams would swap states).

    The stacks of all rows form one tree of frames: a row's stack is the path from its top to frame 0, which means "no frame".
    """

    def __init__(self, path, vocab_size, max_new_tokens, device):
        with safe_open(path, framework="pt", device=str(device)) as file:
            self.metadata = file.metadata()
            tensors = {name: file.get_tensor(name).long() for name in file.keys()}
        self.next, form = tensors["next"], self.metadata["form"]
        if form == "token_level":
            columns = tensors["class"][:, None]
        else:
            # Tokens as rows of columns, padded with -1 to the longest.
            symbols, lengths = tensors["symbols"], tensors["offsets"].diff()
            places = torch.arange(int(lengths.max()), device=device)
            columns = torch.full((len(lengths), len(places)), -1, device=device)
            columns[places < lengths[:, None]] = tensors["column"][symbols]
        if form == "pushdown":
            self.jumps, self.max_frames = tensors["jumps"], int(self.metadata["frames"])
            self.to_exit, self.height = tensors["tokens_to_exit"], tensors["frames_to_exit"]
        else:
            self.jumps, self.max_frames = self.next.new_zeros(len(self.next), 2), 0
            self.to_exit = tensors["tokens_to_end"][:, None]
            self.height = torch.zeros_like(self.to_exit)
        # Logits past the vocabulary are never legal.
        self.columns = torch.full((vocab_size, columns.shape[1]), -1, device=device)
        self.columns[:, 0] = NEVER
        self.columns[: len(columns)] = columns
        # In forced text only the longest token is legal: some states forbid tokens of fewer symbols.
        self.lengths = (self.columns >= 0).sum(1)
        self.shortest = tensors.get("shortest", self.next.new_zeros(len(self.next)))
        # For each frame: the call state, the frame below, the depth, and the cost of each exit.
        costs = self.to_exit.new_full((1, self.to_exit.shape[1]), NO_PATH)
        costs[0, 0] = 0
        none = costs.new_zeros(1)
        self.tree = [none, none, none, costs]
        self.states, self.tops, self.left = None, None, max_new_tokens

    def to_end(self, states, tops):
        """The least number of tokens to the end from states, or rows of states, on the stacks with these tops."""
        _, _, depth, costs = self.tree
        shape = [len(tops)] + [1] * (states.dim() - 1)
        to_exit, cost = self.to_exit[states], costs[tops].view(*shape, self.to_exit.shape[1])
        fits = (to_exit < NO_PATH) & (cost < NO_PATH) & (depth[tops].view(*shape, 1) + self.height[states] <= self.max_frames)
        return torch.where(fits, to_exit + cost, NO_PATH).amin(-1)

    def settle(self, states, tops):
        """Computes the epsilon closures of rows: pushes call states, and pops for return states."""
        while (jumps := self.jumps[states, 0]).any():
            call, below, depth, costs = self.tree
            push, back = (jumps > 0) & (depth[tops] < self.max_frames), (jumps < 0) & (tops > 0)
            at, under = states[push], tops[push]
            to = self.jumps[at, 1:]
            pushed = [at, under, depth[under] + 1, torch.where(to == DEAD, NO_PATH, self.to_end(to, under))]
            states = torch.where(push, jumps, torch.where(jumps == 0, states, DEAD))
            states[back] = self.jumps[call[tops[back]], -jumps[back]]
            tops = torch.where(back, below[tops], tops)
            tops[push] = len(call) + torch.arange(len(at), device=tops.device)
            self.tree = [torch.cat(pair) for pair in zip(self.tree, pushed)]
        return states, tops

    def after(self, states, tops, columns):
        """The states of rows after tokens, each a row of columns; DEAD if a token is illegal."""
        for column in columns.unbind(-1):
            states = torch.where(column < 0, states, self.next[states, column])
            states, tops = self.settle(states, tops)
        return torch.where(self.to_end(states, tops) == NO_PATH, DEAD, states), tops

    def __call__(self, input_ids, scores):
        batch, vocab_size = scores.shape
        if self.states is None:
            start = int(self.metadata["start"])
            self.states = torch.full((batch,), start, device=scores.device)
            self.tops = torch.zeros_like(self.states)
        else:
            # Done rows are padded.
            after, tops = self.after(self.states, self.tops, self.columns[input_ids[:, -1]])
            self.states, self.tops = torch.where(self.states == DONE, DONE, after), tops
        self.left -= 1
        known = self.tree
        rows = [row.repeat_interleave(vocab_size) for row in (self.states, self.tops)]
        after, tops = self.after(*rows, self.columns.repeat(batch, 1))
        legal = (after != DEAD) & (self.to_end(after, tops) <= self.left)
        legal &= self.lengths.repeat(batch) >= self.shortest[rows[0]]
        # No row uses the frames of the trial.
        self.tree = known
        return scores.masked_fill(~legal.view(batch, vocab_size), float("-inf"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("artifact")
    parser.add_argument("--prompt", default="Meet Nora Keller, a 34 year old baker from Lisbon.")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sample", type=int, help="a seed")
    args = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model).to(args.device)
    chat = [{"role": "user", "content": args.prompt}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    prompt = prompt.to(args.device)
    options = {"max_new_tokens": args.max_new_tokens, "do_sample": args.sample is not None}
    for constrained in [False, True]:
        torch.manual_seed(args.sample or 0)
        constraint = CompiledConstraint(args.artifact, model.config.vocab_size, args.max_new_tokens, args.device)
        output = model.generate(**prompt, **options, logits_processor=[constraint] if constrained else [])
        text = tokenizer.decode(output[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
        print(f"{'constrained' if constrained else 'free':<12}{text!r}")


if __name__ == "__main__":
    main()
