"""XGrammar as its authors build it, on cases that a file describes: `upstream.py cases.json`, prints JSON.

The same work as in the Rust program: compile and first mask with a compiler that is new for each grammar; accept a
token, fill the mask and apply it, for one row and for batches. Calls go through Python, which costs a microsecond or
two each. `--check` only says whether it could run.
"""

import json
import statistics
import sys
import time


def main():
    import torch
    import xgrammar

    if sys.argv[1:] == ["--check"]:
        print(f"XGrammar of its authors, through Python {sys.version.split()[0]}")
        return
    # For the copies between the steps; XGrammar has threads of its own.
    torch.set_num_threads(1)
    with open(sys.argv[1]) as file:
        work = json.load(file)
    words = [bytes.fromhex(word) for word in work["vocabulary"]]
    info = xgrammar.TokenizerInfo(words, vocab_size=len(words), stop_token_ids=[work["eos"]])
    engine = Engine(torch, xgrammar, info, len(words), work)
    print(json.dumps([engine.measure(case) for case in work["cases"]]))


class Engine:
    def __init__(self, torch, xgrammar, info, width, work):
        self.torch, self.xgrammar, self.info, self.width, self.work = torch, xgrammar, info, width, work
        self.template = torch.linspace(-8.0, 8.0, width).reshape(1, -1)
        self.runs = range(work["runs"])

    def measure(self, case):
        """Two results: the whole step, and the step without applying the mask."""
        try:
            first = [self.first_mask(case) for _ in range(self.work["first_runs"])]
        except Exception as error:
            return [{"refusal": str(error).splitlines()[0]}] * 2
        grammar = first[-1][0]
        texts = [self.text(grammar, text) for text in case["texts"]]
        batches = []
        if case["batched"]:
            batches = [
                [medians([self.batch(grammar, case["batched"], rows, threads) for _ in self.runs]) for threads in (1, 2)]
                for rows in self.work["batches"]
            ]
        return [
            {
                "first_mask": statistics.median(time for _, time in first),
                "bytes": grammar.memory_size_bytes,
                "texts": [times and [step[way] for step in times] for times in texts],
                "batches": [[[step[way] for step in times] for times in ways] for ways in batches],
            }
            for way in (0, 1)
        ]

    def compile(self, compiler, case):
        if "regex" in case:
            return compiler.compile_regex(case["regex"])
        if "grammar" in case:
            return compiler.compile_grammar(case["grammar"])
        if "structural_tag" in case:
            return compiler.compile_structural_tag(case["structural_tag"])
        if "lark" in case:
            return compiler.compile_lark(case["lark"])
        return compiler.compile_json_schema(
            case["schema"], any_whitespace=False, separators=(",", ":"), strict_mode=False
        )

    def first_mask(self, case):
        compiler = self.xgrammar.GrammarCompiler(self.info, max_threads=2)
        mask = self.xgrammar.allocate_token_bitmask(1, self.width)
        logits = self.template.clone()
        self.torch.ones(64 << 18).sum()
        began = time.perf_counter()
        grammar = self.compile(compiler, case)
        matcher = self.xgrammar.GrammarMatcher(grammar)
        if matcher.fill_next_token_bitmask(mask):
            self.xgrammar.apply_token_bitmask_inplace(logits, mask)
        return grammar, microseconds(began)

    def text(self, grammar, text):
        """The times of each step; None where a token is rejected."""
        runs = []
        for _ in self.runs:
            matcher = self.xgrammar.GrammarMatcher(grammar)
            mask = self.xgrammar.allocate_token_bitmask(1, self.width)
            logits = self.template.clone()
            times = []
            for token in [None, *text]:
                logits.copy_(self.template)
                began = time.perf_counter()
                accepted = token is None or matcher.accept_token(token)
                needed = matcher.fill_next_token_bitmask(mask)
                filled = microseconds(began)
                if needed:
                    self.xgrammar.apply_token_bitmask_inplace(logits, mask)
                times.append((microseconds(began), filled))
                if not accepted:
                    return None
            if logits[0, self.work["eos"]] == -float("inf"):
                return None
            runs.append(times)
        return medians(runs)

    def batch(self, grammar, texts, rows, threads):
        """The times of each step of rows that stand at different places of the texts."""
        window = min(self.work["window"], (min(map(len, texts)) + 1) // 2)
        texts = [texts[row % len(texts)] for row in range(rows)]
        starts = [row * (len(text) - window) // rows for row, text in enumerate(texts)]
        matchers = [self.xgrammar.GrammarMatcher(grammar) for _ in range(rows)]
        for matcher, text, start in zip(matchers, texts, starts):
            for token in text[:start]:
                matcher.accept_token(token)
        together = self.xgrammar.BatchGrammarMatcher(max_threads=threads)
        mask = self.xgrammar.allocate_token_bitmask(rows, self.width)
        template = self.template.repeat(rows, 1)
        logits = template.clone()
        times = []
        for step in range(window):
            tokens = [text[start + step] for text, start in zip(texts, starts)]
            logits.copy_(template)
            began = time.perf_counter()
            together.batch_accept_token(matchers, tokens)
            together.batch_fill_next_token_bitmask(matchers, mask)
            filled = microseconds(began)
            self.xgrammar.apply_token_bitmask_inplace(logits, mask)
            times.append((microseconds(began), filled))
        return times


def microseconds(began):
    return (time.perf_counter() - began) * 1e6


def medians(runs):
    """Of each step and each of its times, the median over the runs."""
    return [[statistics.median(times) for times in zip(*step)] for step in zip(*runs)]


main()
