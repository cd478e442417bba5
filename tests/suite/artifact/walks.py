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
VERSIONS = {"tabulated": "1", "walked": "1", "called": "2"}


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


def shortest_ways(next, jumps, bytes):
    """The bytes of the shortest way from each state to each outcome, and the frames that it adds: [states, outcomes]."""
    # Both in one number, so that of ways that are equally long the one of the fewest frames is the least.
    none = np.int64(NO_WAY) << 20
    ways = np.full((len(next), jumps.shape[1] - 1), none)
    accepting, calls, returns = next[:, 1] == 1, jumps[:, 0] > 0, jumps[:, 0] < 0
    ways[accepting, 0] = 1 << 20
    ways[returns, -1 - jumps[returns, 0]] = 0
    ways[[1, 2], 0] = 0
    while True:
        before = ways.copy()
        for column in bytes:
            # The illegal state has no way.
            ways = np.minimum(ways, ways[next[:, column]] + (1 << 20))
        piece, rest = ways[jumps[calls, 0]][:, :, None], ways[jumps[calls, 1:]]
        height = np.maximum((piece & 0xFFFFF) + 1, rest & 0xFFFFF)
        through = ((piece >> 20) + (rest >> 20) << 20) + height
        ways[calls] = np.minimum(ways[calls], through.min(1))
        ways = np.minimum(ways, none)
        if (ways == before).all():
            return ways >> 20, ways & 0xFFFFF


class Table:
    """A table, and the stacks of its rows: a tree of frames, in which a row's stack is the path from its top to frame 0."""

    def __init__(self, path):
        metadata, tensors = load(path)
        form = metadata["form"]
        assert metadata["format"] == "burn-dfa token table" and metadata["format_version"] == VERSIONS[form]
        assert metadata["checksum"] == checksum(metadata, tensors)
        self.start = int(metadata["start"])
        self.next = tensors["next"]
        if form == "tabulated":
            self.columns = tensors["class"][:, None]
        else:
            # Tokens as rows of columns, padded with -1 to the longest.
            offsets, columns = tensors["offsets"], tensors["column"][tensors["symbols"]]
            lengths = np.diff(offsets)
            self.columns = np.full((len(lengths), lengths.max()), -1)
            self.columns[np.arange(lengths.max()) < lengths[:, None]] = columns
        if form == "called":
            self.jumps, self.max_frames = tensors["jumps"], int(metadata["frames"])
            # Bytes that are tokens.
            only = tensors["symbols"][offsets[:-1][lengths == 1]]
            spelled = np.unique(tensors["column"][only[only < 256]])
            self.ways, self.height = shortest_ways(self.next, self.jumps, spelled)
        else:
            self.ways = tensors["tokens_to_end"][:, None]
            self.jumps, self.max_frames = np.zeros((len(self.next), 2), int), 0
            self.height = np.zeros_like(self.ways)
        # Of each frame: the call state, the frame below, the depth, the cost of each outcome. The first stands for no frame.
        bottom = np.full((1, self.ways.shape[1]), NO_WAY)
        bottom[0, 0] = 0
        self.call, self.below, self.depth, self.costs = np.array([0]), np.array([0]), np.array([0]), bottom

    def to_end(self, states, tops):
        """The least number of tokens to the end, of states on stacks that are one frame for each row."""
        cost, depth = self.costs[tops], self.depth[tops]
        while cost.ndim <= states.ndim:
            cost, depth = cost[:, None], depth[:, None]
        ways, height = self.ways[states], self.height[states]
        fits = (ways < NO_WAY) & (cost < NO_WAY) & (depth[..., None] + height <= self.max_frames)
        return np.where(fits, ways + cost, NO_WAY).min(-1)

    def settle(self, states, tops):
        """Pushes the call states of rows, and pops for their return states, until they rest."""
        while (jumps := self.jumps[states, 0]).any():
            fits, empty = self.depth[tops] < self.max_frames, tops == 0
            push, back = (jumps > 0) & fits, (jumps < 0) & ~empty
            # Pushed first, since the rows are told apart by what they were.
            call, below = states[push], tops[push]
            to = self.jumps[call, 1:]
            costs = np.where(to == 0, NO_WAY, self.to_end(to, below))
            states = np.where(push, jumps, np.where(jumps == 0, states, 0))
            states[back] = self.jumps[self.call[tops[back]], -jumps[back]]
            tops = np.where(back, self.below[tops], tops)
            tops[push] = len(self.call) + np.arange(len(call))
            self.call, self.below = np.append(self.call, call), np.append(self.below, below)
            self.depth = np.append(self.depth, self.depth[below] + 1)
            self.costs = np.append(self.costs, costs, 0)
        return states, tops

    def after(self, states, tops, columns):
        """The states and stacks of rows after tokens, each a row of columns."""
        for column in columns.T:
            states = np.where(column < 0, states, self.next[states, column])
            states, tops = self.settle(states, tops)
        return np.where(self.to_end(states, tops) == NO_WAY, 0, states), tops

    def legal(self, states, tops, spare):
        """Which tokens may follow, with `spare` tokens left after them: [rows, vocabulary]."""
        positions, where = np.unique(np.stack([states, tops]), axis=1, return_inverse=True)
        width, known = len(self.columns), len(self.call)
        after, tops = self.after(*positions.repeat(width, 1), np.tile(self.columns, (positions.shape[1], 1)))
        legal = (after != 0) & (self.to_end(after, tops) <= spare)
        # No row is on the frames that were only tried.
        self.call, self.below, self.depth, self.costs = (
            frames[:known] for frames in (self.call, self.below, self.depth, self.costs)
        )
        return legal.reshape(-1, width)[where.reshape(-1)]


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")):
        table = Table(path)
        _, walks = load(path.with_suffix(".walks"))
        steps, count = walks["tokens"].shape
        states, tops = np.full(count, table.start), np.zeros(count, int)
        for step in range(steps):
            legal = np.packbits(table.legal(states, tops, steps - step - 1), axis=-1, bitorder="little")
            different = (legal != walks["masks"][step]).any(-1).nonzero()[0]
            assert not len(different), f"{path.stem}: step {step}, walk {different[0]}: another mask"
            states, tops = table.after(states, tops, table.columns[walks["tokens"][step]])
        print(f"{path.stem}: {count} walks of {steps} tokens, at most {table.depth.max()} frames, all masks equal")


main()
