"""Constrains a Hugging Face model by an artefact of burn-dfa, on any torch device: by indexing alone.

    python constrain.py MODEL ARTEFACT [--prompt TEXT] [--max-new-tokens N] [--device DEVICE] [--sample SEED]
"""

import argparse

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor

DEAD, DONE, NEVER = 0, 1, 0
NO_WAY = torch.iinfo(torch.int32).max


class TokenTable(LogitsProcessor):
    """Masks what the constraint forbids, for one batch of greedy decoding or sampling (beams would swap states)."""

    def __init__(self, path, width, max_new_tokens, device):
        with safe_open(path, framework="pt", device=str(device)) as file:
            self.metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if self.metadata["form"] == "called":
            raise SystemExit("the artefact needs a stack, which is not done here: compile it with --max-frames 0")
        self.next, self.to_end = tensors["next"].long(), tensors["tokens_to_end"]
        if self.metadata["form"] == "tabulated":
            columns = tensors["class"].long()[:, None]
        else:
            # Tokens as rows of columns, padded with -1 to the longest.
            symbols, lengths = tensors["symbols"].long(), tensors["offsets"].diff()
            places = torch.arange(int(lengths.max()), device=device)
            columns = torch.full((len(lengths), len(places)), -1, device=device)
            columns[places < lengths[:, None]] = tensors["column"].long()[symbols]
        # Logits past the vocabulary are never legal.
        self.columns = torch.full((width, columns.shape[1]), -1, device=device)
        self.columns[:, 0] = NEVER
        self.columns[: len(columns)] = columns
        self.states, self.left = None, max_new_tokens

    def after(self, states, columns):
        """The states after tokens, each a row of columns; DEAD where a token is illegal."""
        for column in columns.unbind(-1):
            states = torch.where(column < 0, states, self.next[states, column])
        return torch.where(self.to_end[states] == NO_WAY, DEAD, states)

    def __call__(self, input_ids, scores):
        if self.states is None:
            start = int(self.metadata["start"])
            self.states = torch.full((len(scores),), start, device=scores.device)
        else:
            # Rows that are done are padded.
            after = self.after(self.states, self.columns[input_ids[:, -1]])
            self.states = torch.where(self.states == DONE, DONE, after)
        self.left -= 1
        after = self.after(self.states[:, None], self.columns)
        legal = (after != DEAD) & (self.to_end[after] <= self.left)
        return scores.masked_fill(~legal, float("-inf"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("artefact")
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
        table = TokenTable(args.artefact, model.config.vocab_size, args.max_new_tokens, args.device)
        output = model.generate(**prompt, **options, logits_processor=[table] if constrained else [])
        text = tokenizer.decode(output[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
        print(f"{'constrained' if constrained else 'free':<12}{text!r}")


if __name__ == "__main__":
    main()
