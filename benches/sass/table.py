"""Compiles CUDA sources with NVRTC and ptxas, without a GPU, and prints a table of their machine code.

usage: table.py SOURCES TOOLS [--architecture sm_90a] [--committed TABLE]

SOURCES is what burn-dfa-sass wrote. TOOLS holds NVRTC, the headers of the runtime, ptxas and nvdisasm, as pip installs them.
Exit code 1 means that a source did not compile, that a kernel spills registers, that vectors of logits were not moved whole, that a mask or a
greedy choice takes too many instructions a logit or loads more than its logits, that a case is worse than in the committed table, or that a
case of this table was not compiled. A case that this table lacks is fine.
"""

import argparse
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from nvrtc import Nvrtc, found


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout + done.stderr


COLUMNS = ["registers", "local bytes", "spilled bytes", "shared bytes", "128-bit loads", "128-bit stores", "stores to local memory",
           "barriers", "instructions", "instructions a logit", "loads from memory a logit"]


# What may not get worse than in the committed table.
COMPARED = ["registers", "local bytes", "spilled bytes", "instructions a logit"]
# The most instructions for a logit in a mask or a greedy choice that reads its bits. One with noise takes more, and may not get worse.
MAX_INSTRUCTIONS = 12


def figure(value):
    """A number of the table; None for a dash."""
    try:
        return float(value)
    except ValueError:
        return None


def committed(path):
    """The numbers of each case of a table in Markdown, by column."""
    columns, cases = [], {}
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "kernel":
            columns = cells[1:]
        elif columns and line.startswith("| "):
            cases[cells[0]] = dict(zip(columns, map(figure, cells[1:])))
    return cases


def loop_of(code, wanted):
    """The instructions of the smallest loop with an instruction of this kind, in order."""
    instructions, labels, loops = [], {}, []
    for line in code.splitlines():
        if label := re.match(r"(\.L_\w+):", line):
            labels[label[1]] = len(instructions)
        elif match := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            instructions.append(match[1])
            if (target := re.search(r"\bBRA.*`\((\.L_\w+)\)", match[1])) and target[1] in labels:
                loops.append(instructions[labels[target[1]]:])
    loops = [loop for loop in loops if any(re.search(wanted, instruction) for instruction in loop)]
    return min(loops, key=len, default=[])


def measured(source, nvrtc, ptxas, nvdisasm, architecture):
    text = source.read_bytes()
    ptx, cubin = source.with_suffix(".ptx"), source.with_suffix(".cubin")
    ptx.write_bytes(nvrtc.ptx(text))
    verbose = run(ptxas, "-v", f"-arch={architecture}", ptx, "-o", cubin)
    code = run(nvdisasm, "-c", cubin)
    source.with_suffix(".sass").write_text(code)

    # The loop over the logits of a tile.
    logits = r"\bLDG\.E[.A-Z0-9]*\.128"
    loop = loop_of(code, logits)
    vectors = sum(bool(re.search(logits, instruction)) for instruction in loop)
    size = re.search(r" by (\d+)", source.stem)
    count_of = vectors * int(size[1]) if size else 0

    def each(pattern):
        found = sum(bool(re.search(pattern, instruction)) for instruction in loop)
        return f"{found / count_of:.2f}" if count_of else "–"

    def number(pattern, within=verbose):
        match = re.search(pattern, within)
        return int(match[1]) if match else 0

    def count(pattern):
        return len(re.findall(pattern, code))

    return [
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        number(r"^// (\d+) bytes of shared memory", text.decode()),
        count(r"\bLDG\.E[.A-Z]*\.128"),
        count(r"\bSTG\.E[.A-Z]*\.128"),
        count(r"\bSTL\b"),
        count(r"\bBAR\.SYNC"),
        # nvdisasm pads the end of a kernel.
        count(r"/\*[0-9a-f]{4,}\*/") - count(r"\bNOP\b"),
        each(r""),
        each(r"\bLDG\b"),
    ]


def worse(row, before):
    numbers = dict(zip(COLUMNS, map(figure, row)))
    for column in COMPARED:
        # An older table may lack a column.
        old, new = before.get(column), numbers[column]
        if old is not None and (new is None or new > old):
            yield f"{column}: {new} instead of {old}"


def wrong(name, row):
    numbers = dict(zip(COLUMNS, row))
    if numbers["spilled bytes"]:
        yield "registers are spilled"
    if size := re.match(r"(?:mask|mask in place|choose),.* by ([48])", name):
        if not numbers["128-bit loads"]:
            yield "no load of 128 bits"
        if name.startswith("mask") and not numbers["128-bit stores"]:
            yield "no store of 128 bits"
        parts = name.split(", ")
        if "pool" in parts and "Gumbel" not in parts:
            instructions = figure(numbers["instructions a logit"])
            if instructions is None:
                yield "no loop over the logits"
            elif instructions > MAX_INSTRUCTIONS:
                yield f"{instructions} instructions a logit, of at most {MAX_INSTRUCTIONS}"
            elif figure(numbers["loads from memory a logit"]) > 1 / int(size[1]):
                yield "the loop over the logits loads more than logits"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--architecture", default="sm_90a")
    parser.add_argument("--committed", type=pathlib.Path)
    arguments = parser.parse_args()
    known = committed(arguments.committed) if arguments.committed else {}
    tools, architecture = arguments.tools, arguments.architecture
    nvrtc = Nvrtc(tools, architecture)
    ptxas, nvdisasm = found(tools, "ptxas"), found(tools, "nvdisasm")
    sources = sorted(arguments.sources.glob("*.cu"))

    def row_of(source):
        try:
            return measured(source, nvrtc, ptxas, nvdisasm, architecture)
        except RuntimeError as error:
            return str(error)

    with ThreadPoolExecutor(2) as threads:
        rows = list(threads.map(row_of, sources))
    versions = [run(tool, "--version").splitlines()[-2].split(", ")[-1] for tool in (ptxas, nvdisasm)]
    print(f"`{architecture}`, ptxas {versions[0]}, nvdisasm {versions[1]}\n")
    print("| kernel | " + " | ".join(COLUMNS) + " |")
    print("|---|" + "---:|" * len(COLUMNS))
    failures = []
    for source, row in zip(sources, rows):
        if isinstance(row, str):
            failures.append(f"{source.stem}: {row}")
            continue
        print(f"| {source.stem} | " + " | ".join(map(str, row)) + " |")
        failures += [f"{source.stem}: {what}" for what in wrong(source.stem, row)]
        failures += [f"{source.stem}: {what}" for what in worse(row, known.get(source.stem, {}))]
    if known:
        # Without common cases nothing was compared.
        names = {source.stem for source in sources}
        failures += [f"{name}: in {arguments.committed}, but not compiled" for name in sorted(known.keys() - names)]
        print(f"{len(names & known.keys())} of {len(names)} cases are in {arguments.committed}", file=sys.stderr)
    print("\n".join(failures), file=sys.stderr)
    sys.exit(1 if failures or not sources else 0)


main()
