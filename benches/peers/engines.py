"""The engines of instances.py: burn-dfa and its peers, each in the version that is installed."""

import argparse
import ctypes
import importlib.metadata
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from artifact import DEAD, Artifact, Position
from tokenizers import Tokenizer

EOS = 0


class Vocabulary:
    """The tokens of a byte-level tokenizer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.encode_special_tokens = True
        file = json.loads(path.read_text())
        kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in kept]
        alphabet = {chr(byte): byte for byte in kept} | {chr(256 + place): byte for place, byte in enumerate(others)}
        special = {token["id"] for token in file["added_tokens"]}
        self.words = [b""] * self.tokenizer.get_vocab_size()
        for word, number in file["model"]["vocab"].items():
            if number not in special:
                self.words[number] = bytes(alphabet[character] for character in word)
        # The tokens that masks are compared by.
        self.compared = np.array([bool(word) for word in self.words])
        self.compared[EOS] = True

    def encode(self, text: str) -> list[int] | None:
        """The tokens of a text; None if they do not spell it."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids if b"".join(self.words[number] for number in ids) == text.encode(errors="replace") else None


class State(Protocol):
    def consume(self, token: int) -> bool: ...

    def may_end(self) -> bool:
        """Whether the text may end here; the state is not used afterwards."""

    def mask(self) -> np.ndarray:
        """A bool for each token."""


class Engine(Protocol):
    name: str

    def version(self) -> str: ...

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        """A function that begins a text. With `spaced`, white space is one space after each comma and colon."""


def bits(words: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(bool)


class Llguidance:
    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary, _: argparse.Namespace) -> None:
        import llguidance

        self.library, self.count = llguidance, len(vocabulary.words)
        self.tokenizer = llguidance.LLTokenizer(vocabulary.path.read_text(), eos_token=EOS)

    def version(self) -> str:
        return importlib.metadata.version("llguidance")

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        if spaced:
            # Without forcing, all tokens of forced text are legal, and not only the longest ones.
            style = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
            whole = json.dumps({"x-guidance": style})[:-1] + ", " + schema.lstrip()[1:]
            grammar = '%llguidance {"no_forcing": true}\nstart: %json ' + whole
        else:
            grammar = self.library.LLMatcher.grammar_from_json_schema(schema)
        matcher = self.library.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return lambda: LlguidanceState(matcher.deep_copy(), self.count)


class LlguidanceState:
    def __init__(self, matcher: Any, count: int) -> None:
        self.matcher, self.count = matcher, count

    def consume(self, token: int) -> bool:
        return self.matcher.consume_token(token)

    def may_end(self) -> bool:
        return self.matcher.is_accepting()

    def mask(self) -> np.ndarray:
        return bits(np.frombuffer(self.matcher.compute_bitmask(), dtype=np.uint8), self.count)


class XGrammar:
    name = "XGrammar"

    def __init__(self, vocabulary: Vocabulary, _: argparse.Namespace) -> None:
        import torch
        import xgrammar

        torch.set_num_threads(1)
        self.library, self.count = xgrammar, len(vocabulary.words)
        self.info = xgrammar.TokenizerInfo(vocabulary.words, vocab_size=self.count, stop_token_ids=[EOS])

    def version(self) -> str:
        return importlib.metadata.version("xgrammar")

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        compiler = self.library.GrammarCompiler(self.info, max_threads=1)
        compiled = compiler.compile_json_schema(
            schema, any_whitespace=not spaced, separators=(", ", ": ") if spaced else None, strict_mode=False
        )
        return lambda: XGrammarState(self.library, self.library.GrammarMatcher(compiled), self.count)


class XGrammarState:
    def __init__(self, library: Any, matcher: Any, count: int) -> None:
        self.library, self.matcher, self.count = library, matcher, count

    def consume(self, token: int) -> bool:
        return self.matcher.accept_token(token)

    def may_end(self) -> bool:
        return self.matcher.accept_token(EOS)

    def mask(self) -> np.ndarray:
        words = self.library.allocate_token_bitmask(1, self.count)
        self.matcher.fill_next_token_bitmask(words)
        return bits(words.numpy()[0], self.count)


class OutlinesCore:
    name = "outlines-core"

    def __init__(self, vocabulary: Vocabulary, _: argparse.Namespace) -> None:
        import outlines_core

        self.library, self.count = outlines_core, len(vocabulary.words)
        ids: dict[bytes, list[int]] = {}
        for number, word in enumerate(vocabulary.words):
            if word:
                ids.setdefault(word, []).append(number)
        self.vocabulary = outlines_core.Vocabulary(EOS, ids)

    def version(self) -> str:
        return importlib.metadata.version("outlines-core")

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        if spaced:
            raise ValueError("its white space is one pattern for all positions")
        regex = self.library.json_schema.build_regex_from_schema(schema)
        index = self.library.Index(regex, self.vocabulary)
        return lambda: OutlinesState(self.library.Guide(index), self.count)


class OutlinesState:
    def __init__(self, guide: Any, count: int) -> None:
        self.guide, self.count = guide, count

    def consume(self, token: int) -> bool:
        try:
            self.guide.advance(token, return_tokens=False)
        except ValueError:
            return False
        return True

    def may_end(self) -> bool:
        return self.guide.is_finished()

    def mask(self) -> np.ndarray:
        legal = np.zeros(self.count, dtype=bool)
        legal[self.guide.get_tokens()] = True
        return legal


class Glrmask:
    name = "glrmask"

    def __init__(self, vocabulary: Vocabulary, _: argparse.Namespace) -> None:
        import glrmask

        self.library, self.count = glrmask, len(vocabulary.words)
        self.vocabulary = glrmask.Vocab.from_id_to_bytes(
            {number: word for number, word in enumerate(vocabulary.words) if word}
        )

    def version(self) -> str:
        return importlib.metadata.version("glrmask")

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        # It writes one space after each comma and colon, without a setting.
        grammar = self.library.Grammar.from_json_schema(schema)
        whole = self.library.Expr.sequence(grammar, self.library.TokenSet([EOS]))
        compiled = self.library.Grammar.from_expr(whole).compile(self.vocabulary)
        return lambda: GlrmaskState(compiled.start(), self.count)


class GlrmaskState:
    def __init__(self, state: Any, count: int) -> None:
        self.state, self.count = state, count

    def consume(self, token: int) -> bool:
        return self.state.commit_token(token)

    def may_end(self) -> bool:
        return self.state.commit_token(EOS)

    def mask(self) -> np.ndarray:
        return self.state.mask(size=self.count)


class BurnDfa:
    """The program compiles to an artifact, and this script reads it."""

    name = "burn-dfa"

    def __init__(self, _: Vocabulary, args: argparse.Namespace) -> None:
        self.args = args

    def version(self) -> str:
        command = [self.args.burn_dfa, "--version"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        # Its default white space is the same.
        with tempfile.TemporaryDirectory() as folder:
            source, artifact = Path(folder, "schema.json"), Path(folder, "artifact.safetensors")
            source.write_text(schema)
            command = [self.args.burn_dfa, "compile", "--schema", str(source), "--eos", str(EOS), "--json"]
            command += ["--tokenizer", str(self.args.tokenizer), "--max-threads", "1"]
            command += ["--max-seconds", str(self.args.seconds), "--output", str(artifact)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode < 0:
                raise MemoryError(f"signal {-result.returncode}")
            if result.returncode:
                raise ValueError(result.stderr.strip().splitlines()[-1])
            constraint = Artifact(artifact.read_bytes())
        return lambda: ArtifactState(constraint)


class ArtifactState:
    def __init__(self, constraint: Artifact) -> None:
        self.constraint = constraint
        self.position: Position = constraint.start()

    def consume(self, token: int) -> bool:
        after = self.constraint.after(self.position, token)
        self.position = after or (DEAD, None)
        return after is not None

    def may_end(self) -> bool:
        return self.consume(EOS)

    def mask(self) -> np.ndarray:
        return self.constraint.mask(self.position)


class LlamaCpp:
    """llama.cpp's converter and matcher, in a library that llama_cpp.cpp describes."""

    name = "llama.cpp"

    def __init__(self, vocabulary: Vocabulary, args: argparse.Namespace) -> None:
        self.words, self.tag = vocabulary.words, args.llama_cpp_version
        self.library = ctypes.CDLL(str(args.llama_cpp), mode=os.RTLD_LAZY)
        for name, result, arguments in [
            ("compile", ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
            ("clone", ctypes.c_void_p, [ctypes.c_void_p]),
            ("free", None, [ctypes.c_void_p]),
            ("accept", ctypes.c_bool, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
            ("may_end", ctypes.c_bool, [ctypes.c_void_p]),
        ]:
            function = getattr(self.library, f"grammar_{name}")
            function.restype, function.argtypes = result, arguments

    def version(self) -> str:
        return self.tag

    def compile(self, schema: str, spaced: bool) -> Callable[[], State]:
        if spaced:
            raise ValueError("its white space has no setting")
        message = ctypes.create_string_buffer(512)
        grammar = self.library.grammar_compile(schema.encode(), message, len(message))
        if not grammar:
            raise ValueError(message.value.decode(errors="replace"))
        return lambda: LlamaCppState(self.library, self.library.grammar_clone(grammar), self.words)


class LlamaCppState:
    def __init__(self, library: Any, grammar: int, words: list[bytes]) -> None:
        self.library, self.grammar, self.words = library, grammar, words

    def __del__(self) -> None:
        self.library.grammar_free(self.grammar)

    def consume(self, token: int) -> bool:
        word = self.words[token]
        return self.library.grammar_accept(self.grammar, word, len(word))

    def may_end(self) -> bool:
        return self.library.grammar_may_end(self.grammar)

    def mask(self) -> np.ndarray:
        raise NotImplementedError


ENGINES = {engine.name: engine for engine in [BurnDfa, Llguidance, XGrammar, OutlinesCore, Glrmask, LlamaCpp]}
