"""Runs the original XGrammar or glrmask on the cases of a file and prints JSON: `upstream.py xgrammar cases.json`.

The work is the same as in the Rust program: compile a grammar with a new compiler and compute the first mask; accept a token and
fill the mask, for one row and for batches. XGrammar applies the mask too. Each call from Python costs one or two microseconds.

A separate process does the work (`--worker`) and prints a line after each step. If a line takes too long or the process dies, the
case ends, and a new process continues with the next case. `--check` only reports whether the script can run.
"""

import json
import queue
import re
import statistics
import subprocess
import sys
import threading
import time
from importlib import metadata


def main():
    library = {"xgrammar": XGrammar, "glrmask": GlrMask}[sys.argv[1]]
    if sys.argv[2] == "--check":
        print(library.version())
    elif sys.argv[2] == "--worker":
        worker(library, sys.argv[3])
    else:
        with open(sys.argv[2]) as file:
            work = json.load(file)
        with Worker() as process:
            print(json.dumps([measure(process, work, number) for number in range(len(work["cases"]))]))


class Worker:
    """The worker process, restarted after it was stopped."""

    def __init__(self):
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def begin(self, case):
        """Begins a case."""
        if self.process is None:
            command = [sys.executable, __file__, sys.argv[1], "--worker", sys.argv[2]]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self.lines = queue.Queue()
            threading.Thread(target=self.read, args=(self.process, self.lines), daemon=True).start()
            # The worker has read the vocabulary.
            self.next(600)
        self.process.stdin.write(f"{case}\n")
        self.process.stdin.flush()

    @staticmethod
    def read(process, lines):
        for line in process.stdout:
            # XGrammar may print warnings.
            if line.startswith("{"):
                lines.put(json.loads(line))
        lines.put(None)

    def next(self, seconds):
        """The next result; None after a process that exceeds the limit or dies, which is stopped."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise TimeoutError from None
        if line is None:
            self.end()
            raise ChildProcessError
        return line

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def measure(process, work, number):
    """A result for each variant of a step."""
    case = work["cases"][number]
    is_grammar = not {"regex", "schema"} & case.keys()
    patience = work["grammar_patience" if is_grammar else "patience"]
    result, texts, batches = {}, [], []
    modes = 1 if sys.argv[1] == "glrmask" else 2
    try:
        process.begin(number)
        times = []
        for _ in range(work["first_runs"]):
            line = process.next(patience)
            if "refusal" in line:
                return [line] * modes
            times.append(line["first_mask"])
        result = {"first_mask": statistics.median(times), "bytes": line["bytes"]}
    except TimeoutError:
        return [{"refusal": f"no mask within {patience} s"}] * modes
    except ChildProcessError:
        return [{"refusal": "its process ends"}] * modes
    try:
        for _ in case["texts"]:
            texts.append(process.next(work["text_patience"] * (work["runs"] + 1))["text"])
        for _ in case["batches"] if case["batched"] else []:
            batches.append(process.next(work["text_patience"] * 10)["batch"])
    except (TimeoutError, ChildProcessError):
        texts += [None] * (len(case["texts"]) - len(texts))
    return [
        {
            **result,
            "texts": [times and [step[mode] for step in times] for times in texts],
            "batches": [[times and [step[mode] for step in times] for times in kinds] for kinds in batches],
        }
        for mode in range(modes)
    ]


def worker(library, path):
    with open(path) as file:
        work = json.load(file)
    words = [bytes.fromhex(word) for word in work["vocabulary"]]
    engine = library(work, words)
    runs = range(work["runs"])
    say({})
    for line in sys.stdin:
        case = work["cases"][int(line)]
        try:
            for _ in range(work["first_runs"]):
                grammar, microseconds, size = engine.first_mask(case)
                say({"first_mask": microseconds, "bytes": size})
        except Exception as error:
            say({"refusal": (str(error).splitlines() or [type(error).__name__])[0]})
            continue
        for text in case["texts"]:
            say({"text": medians([engine.text(grammar, text) for _ in runs])})
        for rows in case["batches"] if case["batched"] else []:
            kinds = [[engine.batch(grammar, case["batched"], rows, threads) for _ in runs] for threads in engine.threads]
            say({"batch": [medians(kind) for kind in kinds]})


def say(line):
    print(json.dumps(line), flush=True)


class XGrammar:
    """A step and a step without applying the mask."""

    threads = (1, 2)

    @staticmethod
    def version():
        import torch  # noqa: F401
        import xgrammar  # noqa: F401

        return f"XGrammar {metadata.version('xgrammar')} of its authors, through Python {sys.version.split()[0]}"

    def __init__(self, work, words):
        import torch
        import xgrammar

        # For the copies between the steps; XGrammar uses separate threads.
        torch.set_num_threads(1)
        self.torch, self.xgrammar, self.eos, self.window = torch, xgrammar, work["eos"], work["window"]
        self.vocab_size = len(words)
        self.info = xgrammar.TokenizerInfo(words, vocab_size=len(words), stop_token_ids=[self.eos])
        self.template = torch.linspace(-8.0, 8.0, self.vocab_size).reshape(1, -1)

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
        mask = self.xgrammar.allocate_token_bitmask(1, self.vocab_size)
        logits = self.template.clone()
        self.torch.ones(64 << 18).sum()
        began = time.perf_counter()
        grammar = self.compile(compiler, case)
        matcher = self.xgrammar.GrammarMatcher(grammar)
        if matcher.fill_next_token_bitmask(mask):
            self.xgrammar.apply_token_bitmask_inplace(logits, mask)
        return grammar, microseconds(began), grammar.memory_size_bytes

    def text(self, grammar, text):
        """The times of each step; None if a token is rejected."""
        matcher = self.xgrammar.GrammarMatcher(grammar)
        mask = self.xgrammar.allocate_token_bitmask(1, self.vocab_size)
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
        return None if logits[0, self.eos] == -float("inf") else times

    def batch(self, grammar, texts, rows, threads):
        """The times of each step of rows at different positions of the texts."""
        window, texts, starts = batch_rows(texts, rows, self.window)
        matchers = [self.xgrammar.GrammarMatcher(grammar) for _ in range(rows)]
        for matcher, text, start in zip(matchers, texts, starts):
            for token in text[:start]:
                matcher.accept_token(token)
        together = self.xgrammar.BatchGrammarMatcher(max_threads=threads)
        mask = self.xgrammar.allocate_token_bitmask(rows, self.vocab_size)
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


class GlrMask:
    """A step without applying the mask; rows of a batch run in sequence."""

    threads = (1,)

    @staticmethod
    def version():
        import glrmask
        import numpy  # noqa: F401

        return f"glrmask {glrmask.__version__}, through Python {sys.version.split()[0]}"

    def __init__(self, work, words):
        import glrmask
        import numpy

        self.glrmask, self.numpy, self.eos, self.window = glrmask, numpy, work["eos"], work["window"]
        self.vocabulary = glrmask.Vocab.from_id_to_bytes({id: word for id, word in enumerate(words) if word})
        self.mask = numpy.zeros((len(words) + 31) // 32, dtype=numpy.int32)
        # This prepares the data that depends on the vocabulary alone.
        self.compile({"regex": "a"}).start().fill_mask(self.mask)

    def compile(self, case):
        """Appends the end token to the grammar."""
        read = self.glrmask.Grammar
        lark = case.get("lark") or case.get("as_lark")
        if "schema" in case:
            grammar = read.from_json_schema(case["schema"])
        elif "regex" in case:
            grammar = read.from_lark("start: /" + slashed(case["regex"]) + "/")
        elif lark is not None:
            grammar = read.from_lark(repeated(lark))
        else:
            raise ValueError("it reads JSON Schema and Lark, and there is no Lark of it")
        end = self.glrmask.TokenSet([self.eos])
        return read.from_expr(self.glrmask.Expr.sequence(grammar, end)).compile(self.vocabulary)

    def first_mask(self, case):
        self.numpy.ones(64 << 17).sum()
        began = time.perf_counter()
        grammar = self.compile(case)
        grammar.start().fill_mask(self.mask)
        return grammar, microseconds(began), None

    def text(self, grammar, text):
        """The times of each step; None if a token is rejected."""
        state = grammar.start()
        times = []
        for token in [None, *text]:
            began = time.perf_counter()
            accepted = token is None or state.commit_token(token)
            state.fill_mask(self.mask)
            times.append((microseconds(began),))
            if not accepted:
                return None
        ends = self.mask[self.eos // 32] >> (self.eos % 32) & 1
        return times if ends else None

    def batch(self, grammar, texts, rows, _threads):
        """The times of each step of rows at different positions of the texts."""
        window, texts, starts = batch_rows(texts, rows, self.window)
        states = [grammar.start() for _ in range(rows)]
        for state, text, start in zip(states, texts, starts):
            state.commit_tokens(text[:start])
        masks = [self.mask.copy() for _ in range(rows)]
        times = []
        for step in range(window):
            tokens = [text[start + step] for text, start in zip(texts, starts)]
            began = time.perf_counter()
            for state, token, mask in zip(states, tokens, masks):
                state.commit_token(token)
                state.fill_mask(mask)
            times.append((microseconds(began),))
        return times


# Literals, regexes and comments of Lark, and the repetitions outside of them.
PIECES = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/|\{(?P<lowest>\d+)(?:,(?P<highest>\d+))?\}'
)


def repeated(lark):
    """Lark with repetitions as Lark's own parser writes them, `~ 2..3`, instead of llguidance's `{2,3}`."""

    def written(piece):
        lowest, highest = piece["lowest"], piece["highest"]
        return piece[0] if lowest is None else f"~ {lowest}..{highest}" if highest else f"~ {lowest}"

    return PIECES.sub(written, lark)


def slashed(regex):
    """A regex between slashes, with inner slashes escaped."""
    escaped, behind_a_backslash = "", False
    for character in regex:
        escaped += "\\/" if character == "/" and not behind_a_backslash else character
        behind_a_backslash = character == "\\" and not behind_a_backslash
    return escaped


def batch_rows(texts, rows, window):
    """The steps of a batch, and the text and start of each row."""
    window = min(window, (min(map(len, texts)) + 1) // 2)
    texts = [texts[row % len(texts)] for row in range(rows)]
    return window, texts, [row * (len(text) - window) // rows for row, text in enumerate(texts)]


def microseconds(began):
    return (time.perf_counter() - began) * 1e6


def medians(runs):
    """The median over the runs of each time of each step; None if a run has no time."""
    if any(times is None for times in runs):
        return None
    return [[statistics.median(times) for times in zip(*step)] for step in zip(*runs)]


main()
