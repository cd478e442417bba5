"""Feeds the instances of MaskBench to burn-dfa, llguidance, XGrammar, outlines-core, glrmask and llama.cpp.

    pip install llguidance xgrammar outlines-core glrmask tokenizers numpy
    python benches/peers/instances.py DATA/maskbench --tokenizer DATA/tokenizers/smollm2/tokenizer.json \\
        --burn-dfa target/release/burn-dfa --schemas 1000 --masks 200 --work WORK --output benches/results/instances.md

DATA is the folder of test data (BURN_DFA_DATA). Schemas come in the order of the SHA-256 of their ids; only schemas with
instances count. WORK keeps one file of JSON lines per engine: a run continues after the last line, `--engines` selects
engines, and `--output` writes the tables of all engines in WORK, on the schemas that all of them have seen.

**Verdicts.** A schema is compiled in a new process with limits of CPU time and memory, so that hangs and crashes are counted.
An instance is written with one space after each comma and colon, tokenized, and consumed token by token; it is accepted if
the engine then allows the end. White space is each engine's default, and all defaults allow this style. Objects are open by
default, as in the standard, if the engine has such a setting. Engines fix the order of properties: an instance counts as
accepted if its text is accepted in the declared order, in its own order, or in an order that a search finds. The search
writes an object key by key and asks the engine which key may follow. Instances that only `format` makes invalid do not count.

**Masks.** The first valid instance of a schema is consumed again, with exactly one space after each comma and colon for all
engines, and the whole set of allowed tokens at each position is compared with burn-dfa's. burn-dfa's masks come from its
artifact, a file that artifact.py reads with numpy. engines.py lists the settings of all engines.

llama.cpp runs as a library of its converter and its matcher (`--llama-cpp libgrammar.so`); llama_cpp.cpp says how to build it.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from engines import (
    ENGINES,
    EOS,
    BurnDfa,
    Engine,
    LlamaCpp,
    OutlinesCore,
    State,
    Vocabulary,
)

SEARCH_CHECKS = 150
GIB = 1 << 30


class Number(str):
    """A number as it is spelled in the file."""


def parse(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


def scalar(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return json.dumps(value)
    return json.dumps(value, ensure_ascii=False)


def write(value: Any) -> str:
    """JSON with one space after each comma and colon."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {write(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    return scalar(value)


# The order of properties


def subschemas(schemas: list[Any], root: Any) -> list[dict]:
    """The schemas, and the schemas to which they refer at the same location of an instance."""
    found: list[dict] = []
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop(0)
        if not isinstance(schema, dict) or any(schema is other for other in found):
            continue
        found.append(schema)
        inner = [schema.get(name) for name in ("then", "else", "if")]
        if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#"):
            inner.insert(0, pointed(root, reference[1:]))
        for name in ("allOf", "anyOf", "oneOf"):
            if isinstance(parts := schema.get(name), list):
                inner += parts
        waiting = inner + waiting
    return found


def pointed(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, dict):
            root = root.get(step)
        elif isinstance(root, list) and step.isdigit() and int(step) < len(root):
            root = root[int(step)]
        else:
            return None
    return root


def declared_order(value: Any, schemas: list[Any], root: Any) -> Any:
    """The value with its properties in the order in which the schemas declare them."""
    if not isinstance(value, dict | list):
        return value
    here = subschemas(schemas, root)
    if isinstance(value, list):
        items = []
        for number, item in enumerate(value):
            inner = []
            for schema in here:
                heads = [schema.get(name) for name in ("prefixItems", "items")]
                head = next((head for head in heads if isinstance(head, list)), [])
                rest = schema.get("items") if isinstance(schema.get("items"), dict) else schema.get("additionalItems")
                inner.append(head[number] if number < len(head) else rest)
            items.append(declared_order(item, inner, root))
        return items
    tables = [schema["properties"] for schema in here if isinstance(schema.get("properties"), dict)]
    names = dict.fromkeys(name for table in tables for name in table if name in value)
    result = {}
    for name in [*names, *(name for name in value if name not in names)]:
        inner = [table[name] for table in tables if name in table]
        for schema in here if not inner else []:
            inner += matching_patterns(schema, name) or [schema.get("additionalProperties")]
        result[name] = declared_order(value[name], inner, root)
    return result


def matching_patterns(schema: dict, name: str) -> list[Any]:
    patterns = schema.get("patternProperties")
    found = []
    for pattern, inner in patterns.items() if isinstance(patterns, dict) else []:
        try:
            if re.search(pattern, name):
                found.append(inner)
        except re.error:
            pass
    return found


# Verdicts


def accepts(begin: Callable[[], State], tokens: list[int]) -> bool:
    state = begin()
    return all(state.consume(token) for token in tokens) and state.may_end()


class Search:
    """Looks for an order of properties that an engine accepts, key by key."""

    def __init__(self, begin: Callable[[], State], vocabulary: Vocabulary) -> None:
        self.begin, self.vocabulary, self.checks = begin, vocabulary, 0

    def texts(self, value: Any) -> Iterator[str]:
        try:
            for text, _ in self.write(value, "", []):
                yield text
        except TimeoutError:
            pass

    def more(self, text: str, tokens: list[int], added: str) -> tuple[str, list[int]] | None:
        self.checks += 1
        if self.checks > SEARCH_CHECKS:
            raise TimeoutError
        ids = self.vocabulary.encode(added)
        if ids is None:
            return None
        tokens = tokens + ids
        state = self.begin()
        return (text + added, tokens) if all(state.consume(token) for token in tokens) else None

    def write(self, value: Any, text: str, tokens: list[int]) -> Iterator[tuple[str, list[int]]]:
        if isinstance(value, dict):
            yield from self.members(value, list(value), text, tokens, "{")
        elif isinstance(value, list):
            yield from self.items(value, text, tokens, "[")
        elif found := self.more(text, tokens, scalar(value)):
            yield found

    def items(self, rest: list, text: str, tokens: list[int], separator: str) -> Iterator[tuple[str, list[int]]]:
        if not rest:
            if found := self.more(text, tokens, "[]" if separator == "[" else "]"):
                yield found
        elif begun := self.more(text, tokens, separator):
            for after in self.write(rest[0], *begun):
                yield from self.items(rest[1:], *after, ", ")

    def members(
        self, value: dict, rest: list[str], text: str, tokens: list[int], separator: str
    ) -> Iterator[tuple[str, list[int]]]:
        if not rest:
            if found := self.more(text, tokens, "{}" if separator == "{" else "}"):
                yield found
        for key in rest:
            if begun := self.more(text, tokens, f"{separator}{scalar(key)}: "):
                for after in self.write(value[key], *begun):
                    yield from self.members(value, [other for other in rest if other != key], *after, ", ")


def has_order(value: Any) -> bool:
    if isinstance(value, dict):
        return len(value) > 1 or any(map(has_order, value.values()))
    return isinstance(value, list) and any(map(has_order, value))


def verdict(begin: Callable[[], State], vocabulary: Vocabulary, schema: Any, value: Any) -> bool | None:
    """Whether an engine accepts a value; None if the tokenizer cannot spell it."""
    arranged = declared_order(value, [schema], schema)
    texts = dict.fromkeys([write(arranged), write(value)])
    spelled = [ids for text in texts if (ids := vocabulary.encode(text)) is not None]
    if not spelled:
        return None
    if any(accepts(begin, ids) for ids in spelled):
        return True
    if has_order(value):
        for text in Search(begin, vocabulary).texts(arranged):
            if (ids := vocabulary.encode(text)) is not None and accepts(begin, ids):
                return True
    return False


# Processes with limits


def limited(work: Callable[[Callable[[Any], None]], None], seconds: float) -> tuple[list[Any], str | None]:
    """Runs work in a new process. Returns its messages, and how it failed: "time", a signal, or None.

    Each message allows the process further `seconds` of CPU time.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)

        def say(message: Any) -> None:
            os.write(writer, json.dumps(message).encode() + b"\n")
            used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, resource.RLIM_INFINITY))

        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + 8 * GIB, mapped + 8 * GIB))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), resource.RLIM_INFINITY))
            work(say)
        except (NameError, AttributeError) as error:
            os.write(writer, json.dumps({"bug": repr(error)}).encode() + b"\n")
        except BaseException as error:  # noqa: BLE001
            os.write(writer, json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}).encode() + b"\n")
        os._exit(0)
    os.close(writer)
    data, deadline = b"", time.monotonic() + 8 * seconds
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(reader, 1 << 16) if ready else b""
        if not chunk:
            break
        data += chunk
        deadline = time.monotonic() + 8 * seconds
    os.close(reader)
    if not ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    failure = None if status >= 0 else signal.Signals(-status).name
    messages = [json.loads(line) for line in data.splitlines()]
    if messages and isinstance(messages[-1], dict) and "bug" in messages[-1]:
        raise RuntimeError(f"in this script: {messages[-1]['bug']}")
    return messages, "time" if failure in ("SIGXCPU", "SIGKILL") else failure


def instances(row: dict) -> list[dict]:
    return [test for test in row["tests"] if test["valid"] or not test.get("needs_format")]


def judge(engine: Engine, vocabulary: Vocabulary, row: dict, seconds: float) -> dict:
    """The verdicts of an engine on the instances of a schema."""
    tests = instances(row)

    def work(say: Callable[[Any], None]) -> None:
        began = time.process_time()
        try:
            begin = engine.compile(write(row["schema"]), False)
            begin()
        except (NameError, AttributeError):
            raise
        except MemoryError as error:
            say({"outcome": "crashed", "reason": str(error)[:200]})
            return
        except Exception as error:  # noqa: BLE001
            say({"outcome": "refused", "reason": str(error)[:200]})
            return
        say({"outcome": "compiled", "seconds": round(time.process_time() - began, 4)})
        for test in tests:
            say(verdict(begin, vocabulary, row["schema"], test["data"]))

    messages, failure = limited(work, seconds)
    result = {"id": row["id"], "tests": [test["valid"] for test in tests]}
    first = messages[0] if messages else {}
    if "error" in first:
        # A panic, or no memory.
        crashed = first["error"].startswith("MemoryError")
        return result | {"outcome": "crashed" if crashed else "refused", "reason": first["error"]}
    if not first:
        return result | {"outcome": "time" if failure == "time" else "crashed", "reason": failure}
    verdicts = [message for message in messages[1:] if not isinstance(message, dict)]
    if first["outcome"] == "compiled" and len(verdicts) < len(tests):
        first["cut"] = failure or messages[-1].get("error", "exit") if isinstance(messages[-1], dict) else failure
    return result | first | {"verdicts": verdicts}


def walk(engine: Engine, vocabulary: Vocabulary, row: dict, positions: int, seconds: float, folder: Path) -> dict:
    """Writes the masks along the first valid instance of a schema to a file."""
    value = next(test["data"] for test in row["tests"] if test["valid"])
    tokens = vocabulary.encode(write(declared_order(value, [row["schema"]], row["schema"])))

    def work(say: Callable[[Any], None]) -> None:
        state = engine.compile(write(row["schema"]), True)()
        say("compiled")
        masks = []
        for token in [*tokens[: positions - 1], None]:
            masks.append(np.packbits(state.mask()))
            say("mask")
            if token is None or not state.consume(token):
                break
        np.save(folder / f"{hashlib.sha256(row['id'].encode()).hexdigest()}.npy", np.stack(masks))
        say({"positions": len(masks)})

    if tokens is None:
        return {"id": row["id"], "positions": 0}
    messages, failure = limited(work, seconds)
    last = messages[-1] if messages else None
    wanted = min(positions, len(tokens) + 1)
    if isinstance(last, dict) and "positions" in last:
        return {"id": row["id"], "wanted": wanted} | last
    reason = last["error"] if isinstance(last, dict) else failure
    return {"id": row["id"], "positions": 0, "wanted": wanted, "reason": reason}


# Runs and tables


def rows_of(folder: Path) -> list[dict]:
    """The schemas with instances, in the order of the SHA-256 of their ids."""
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().split("\n") if line]
    lines.sort(key=lambda line: hashlib.sha256(line.split('"')[3].encode()).digest())
    return [row for line in lines if '"tests":[]' not in line and instances(row := parse(line))]


def run(args: argparse.Namespace, name: str, rows: list[dict], vocabulary: Vocabulary) -> None:
    engine = ENGINES[name](vocabulary, args)
    folder = args.work / name
    (folder / "masks").mkdir(parents=True, exist_ok=True)
    (folder / "version").write_text(engine.version())
    with_valid = [row for row in rows if any(test["valid"] for test in row["tests"])]
    tasks = [
        ("verdicts", rows[: args.schemas], lambda row: judge(engine, vocabulary, row, args.seconds)),
        (
            "walks",
            with_valid[: args.masks],
            lambda row: walk(engine, vocabulary, row, args.positions, args.seconds, folder / "masks"),
        ),
    ]
    for kind, selected, work in tasks:
        path = folder / f"{kind}.jsonl"
        seen = {json.loads(line)["id"] for line in path.read_text().splitlines()} if path.exists() else set()
        with path.open("a") as file:
            for number, row in enumerate(selected):
                if row["id"] not in seen:
                    file.write(json.dumps(work(row)) + "\n")
                    file.flush()
                    if number % 100 == 0:
                        print(f"{name}: {kind}, {number} of {len(selected)}", file=sys.stderr)


def read(path: Path) -> dict[str, dict]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())} if path.exists() else {}


def tables(args: argparse.Namespace, vocabulary: Vocabulary) -> str:
    names = [name for name in ENGINES if (args.work / name / "version").exists()]
    versions = {name: (args.work / name / "version").read_text() for name in names}
    verdicts = {name: read(args.work / name / "verdicts.jsonl") for name in names}
    walks = {name: read(args.work / name / "walks.jsonl") for name in names}
    options = f" --schemas {args.schemas}" * bool(args.schemas) + f" --masks {args.masks}" * bool(args.masks)
    text = [
        "# Instances",
        "",
        "Verdicts of engines on the valid and invalid instances of MaskBench, and their whole masks. "
        f"[`instances.py`](../peers/instances.py) wrote this page on {args.date}; its head describes the method:",
        "",
        "    python benches/peers/instances.py DATA/maskbench --tokenizer DATA/tokenizers/smollm2/tokenizer.json \\",
        f"        --burn-dfa target/release/burn-dfa{options} --work WORK --output benches/results/instances.md",
        "",
        f"The limits are {args.seconds} s of CPU time for a schema and for each instance, 8 GiB of memory, and one thread. "
        f"The vocabulary is SmolLM2's, with {len(vocabulary.words):,} ids.",
    ]
    # Slower engines have seen fewer schemas: each table has the engines that have seen its schemas.
    names_by_count = sorted((name for name in names if verdicts[name]), key=lambda name: len(verdicts[name]))
    done: set[str] = set()
    for place in range(len(names_by_count)):
        group = [other for other in names if other in names_by_count[place:]]
        common = set.intersection(*(set(verdicts[other]) for other in group))
        larger = not done or len(common) > 1.5 * len(done)
        if len(group) > 1 and larger:
            text += ["", *verdict_table({other: verdicts[other] for other in group}, versions, common)]
            done = common
    text += ["", *notes(names)]
    masked = [name for name in names if name != BurnDfa.name and any(row["positions"] for row in walks[name].values())]
    if masked and walks.get(BurnDfa.name):
        text += ["", "## Masks", "", *mask_table(args, vocabulary, masked, versions, walks)]
    return "\n".join(wrapped(text)) + "\n"


def verdict_table(verdicts: dict[str, dict[str, dict]], versions: dict[str, str], common: set[str]) -> list[str]:
    def wrong(row: dict, valid: bool) -> int:
        given = row.get("verdicts", [])
        return sum(test is valid and said is (not valid) for test, said in zip(row["tests"], given))

    def judged(row: dict, valid: bool) -> int:
        return sum(test is valid and said is not None for test, said in zip(row["tests"], row.get("verdicts", [])))

    def passed(row: dict) -> int:
        return row["outcome"] == "compiled" and "cut" not in row and not wrong(row, True) and not wrong(row, False)

    counts: list[tuple[str, Callable[[dict], int]]] = [
        ("**passed**", passed),
        ("refused", lambda row: row["outcome"] == "refused"),
        ("over the time limit", lambda row: row["outcome"] == "time" or row.get("cut") == "time"),
        ("crashed", lambda row: row["outcome"] == "crashed" or row.get("cut", "time") != "time"),
        ("accepts an invalid instance", lambda row: wrong(row, False) > 0),
        ("rejects a valid instance", lambda row: wrong(row, True) > 0),
        ("valid instances judged", lambda row: judged(row, True)),
        ("valid instances rejected", lambda row: wrong(row, True)),
        ("invalid instances judged", lambda row: judged(row, False)),
        ("invalid instances accepted", lambda row: wrong(row, False)),
    ]
    head = " | ".join(label for label, _ in counts)
    lines = [f"| engine | {head} |", "|---|" + "---:|" * len(counts)]
    for name, rows in verdicts.items():
        cells = [f"{sum(count(rows[number]) for number in common):,}" for _, count in counts]
        lines.append(f"| {name} {versions[name]} | " + " | ".join([f"**{cells[0]}**", *cells[1:]]) + " |")
    some = next(iter(verdicts.values()))
    valid, invalid = (sum(some[number]["tests"].count(kind) for number in common) for kind in (True, False))
    title = f"## {len(common):,} schemas, {valid:,} valid and {invalid:,} invalid instances"
    return [title, "", "The first six columns count schemas.", "", *lines]


def notes(names: list[str]) -> list[str]:
    notes = {
        BurnDfa.name: "- An accepted invalid instance is a provable error: the engine allows a text that the schema forbids. "
        "Only instances of compiled schemas are judged.",
        OutlinesCore.name: "- outlines-core closes objects that declare properties, and no setting changes that.",
        LlamaCpp.name: "- llama.cpp closes objects by default, as its guide says, without a setting. Its converter and its "
        "matcher run without its sampler.",
    }
    return [note for name, note in notes.items() if name in names]


def mask_table(
    args: argparse.Namespace, vocabulary: Vocabulary, names: list[str], versions: dict[str, str], walks: dict
) -> list[str]:
    ours = walks[BurnDfa.name]
    lines = [
        "| engine | schemas | positions | equal to burn-dfa's | equal but for one token | more tokens | fewer tokens "
        "| some more, some fewer | texts cut off |",
        "|---|" + "---:|" * 8,
    ]
    tokens = []
    for name in names:
        compared = cut = 0
        counts: Counter[str] = Counter()
        added_tokens: Counter[int] = Counter()
        missing_tokens: Counter[int] = Counter()
        for number, row in walks[name].items():
            mine = ours.get(number, {"positions": 0})
            if not row["positions"] or not mine["positions"]:
                continue
            file = f"{hashlib.sha256(number.encode()).hexdigest()}.npy"
            theirs, reference = (
                np.unpackbits(np.load(args.work / engine / "masks" / file), axis=1)[:, : len(vocabulary.words)]
                for engine in (name, BurnDfa.name)
            )
            compared += 1
            cut += row["positions"] < row["wanted"]
            for their, our in zip(theirs.astype(bool), reference.astype(bool), strict=False):
                added = np.flatnonzero(their & ~our & vocabulary.compared)
                missing = np.flatnonzero(our & ~their & vocabulary.compared)
                counts["positions"] += 1
                counts["one"] += len(added) + len(missing) == 1
                kinds = {(False, False): "equal", (True, False): "more", (False, True): "fewer", (True, True): "both"}
                counts[kinds[bool(len(added)), bool(len(missing))]] += 1
                added_tokens.update(added.tolist())
                missing_tokens.update(missing.tolist())
        share = f"{counts['equal']:,} ({100 * counts['equal'] / max(counts['positions'], 1):.1f} %)"
        cells = [f"{counts[kind]:,}" for kind in ("one", "more", "fewer", "both")]
        lines.append(
            f"| {name} {versions[name]} | {compared:,} | {counts['positions']:,} | {share} | {' | '.join(cells)} | {cut:,} |"
        )
        for kind, found in [("more", added_tokens), ("fewer", missing_tokens)]:
            words = [
                f"`{vocabulary.words[token]!r}` ({count:,})" for token, count in found.most_common(5) if token != EOS
            ]
            if words:
                tokens.append(f"- {name}, {kind} tokens: most often {', '.join(words)}.")
    total = sum(row["positions"] > 0 for row in ours.values())
    short = sum(0 < row["positions"] < row["wanted"] for row in ours.values())
    about = (
        f"The texts are the first valid instances of the first {len(ours):,} schemas that have one, with at most "
        f"{args.positions} positions each. burn-dfa compiles {total:,} of the schemas, and rejects {short:,} of the texts. "
        "*Schemas* counts the schemas that burn-dfa and the engine compile; the engine may have run on fewer schemas. White "
        "space is exactly one space after each comma and colon. The end of the text counts as a token, and other special "
        "tokens do not count. *Texts cut off* counts texts with a token that the engine rejects. Properties are in the "
        "declared order, without a search for another order."
    )
    return [about, "", *lines, "", *tokens]


def wrapped(lines: list[str]) -> list[str]:
    """Wraps prose at 100 columns."""
    result = []
    for line in lines:
        if line.startswith(("|", "#", "    ")):
            result.append(line)
            continue
        indent = "  " if line.startswith("- ") else ""
        current = ""
        for word in line.split(" "):
            if current and len(current) + 1 + len(word) > 100:
                result.append(current)
                current = indent + word
            else:
                current = f"{current} {word}" if current else word
        result.append(current)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of MaskBench's JSON lines")
    parser.add_argument("--tokenizer", type=Path, required=True, help="the tokenizer.json of SmolLM2")
    parser.add_argument("--burn-dfa", default="target/release/burn-dfa", help="the program")
    parser.add_argument("--llama-cpp", type=Path, help="the library that llama_cpp.cpp describes")
    parser.add_argument("--llama-cpp-version", default="", help="its version, for the table")
    parser.add_argument("--engines", default=None, help="names, separated by commas; `none` only writes the tables")
    parser.add_argument("--schemas", type=int, default=None, help="the number of schemas; default: all")
    parser.add_argument("--masks", type=int, default=0, help="the number of schemas with whole masks")
    parser.add_argument("--positions", type=int, default=64, help="positions with masks in a text")
    parser.add_argument("--seconds", type=int, default=10, help="the limit of CPU time")
    parser.add_argument("--work", type=Path, required=True, help="the folder of verdicts and masks")
    parser.add_argument("--output", type=Path, help="the Markdown file to write")
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    args = parser.parse_args()
    vocabulary = Vocabulary(args.tokenizer)
    default = [name for name in ENGINES if name != LlamaCpp.name or args.llama_cpp]
    names = default if args.engines is None else [name for name in args.engines.split(",") if name != "none"]
    rows = rows_of(args.folder) if names else []
    for name in names:
        run(args, name, rows, vocabulary)
    if args.output:
        args.output.write_text(tables(args, vocabulary))


if __name__ == "__main__":
    main()
