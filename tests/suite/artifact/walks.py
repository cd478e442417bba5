"""Follows random walks through artefacts with numpy, and compares the masks with those of the library.

Usage: walks.py FOLDER, which holds NAME.safetensors (an artefact, as docs/artifact.md has it) and NAME.walks
(tokens [steps, walks] and legal tokens as bits [steps, walks, width / 8]) for each NAME.
"""

import hashlib
import pathlib
import struct
import sys

import numpy as np
from safetensors import safe_open

NO_WAY = np.iinfo(np.int32).max


def load(path):
    with safe_open(path, framework="np") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}


def checksum(metadata, tensors):
    """As docs/artifact.md says."""
    dtypes = {np.dtype("<i4"): "I32", np.dtype("<u2"): "U16"}
    number = lambda n: struct.pack("<Q", n)
    text = lambda t: number(len(t.encode())) + t.encode()
    entries = sorted((key, value) for key, value in metadata.items() if key != "checksum")
    data = number(len(entries)) + b"".join(text(key) + text(value) for key, value in entries)
    data += number(len(tensors))
    for name, tensor in sorted(tensors.items()):
        data += text(name) + text(dtypes[tensor.dtype]) + number(tensor.ndim)
        data += b"".join(map(number, tensor.shape)) + tensor.tobytes()
    return hashlib.sha256(data).hexdigest()


class Table:
    def __init__(self, path):
        metadata, tensors = load(path)
        assert metadata["format"] == "burn-dfa token table" and metadata["format_version"] == "1"
        assert metadata["checksum"] == checksum(metadata, tensors)
        self.start = int(metadata["start"])
        self.next, self.to_end = tensors["next"], tensors["tokens_to_end"]
        if metadata["form"] == "tabulated":
            self.columns = tensors["class"][:, None]
        else:
            # Tokens as rows of columns, padded with -1 to the longest.
            offsets, columns = tensors["offsets"], tensors["column"][tensors["symbols"]]
            lengths = np.diff(offsets)
            self.columns = np.full((len(lengths), lengths.max()), -1)
            self.columns[np.arange(lengths.max()) < lengths[:, None]] = columns

    def after(self, states, columns):
        """The states after tokens, each a row of columns; 0 where a token is illegal."""
        for column in np.moveaxis(columns, -1, 0):
            states = np.where(column < 0, states, self.next[states, column])
        return np.where(self.to_end[states] == NO_WAY, 0, states)

    def legal(self, states, spare):
        """Which tokens may follow, with `spare` tokens left after them: [states, vocabulary]."""
        distinct, where = np.unique(states, return_inverse=True)
        after = self.after(distinct[:, None], self.columns[None])
        return ((after != 0) & (self.to_end[after] <= spare))[where]


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")):
        table = Table(path)
        _, walks = load(path.with_suffix(".walks"))
        steps, count = walks["tokens"].shape
        states = np.full(count, table.start)
        for step in range(steps):
            legal = np.packbits(table.legal(states, steps - step - 1), axis=-1, bitorder="little")
            different = (legal != walks["masks"][step]).any(-1).nonzero()[0]
            assert not len(different), f"{path.stem}: step {step}, walk {different[0]}: another mask"
            states = table.after(states, table.columns[walks["tokens"][step]])
        print(f"{path.stem}: {count} walks of {steps} tokens, all masks equal")


main()
