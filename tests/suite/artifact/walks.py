"""Follows random walks through artifacts with numpy, and compares the masks with the library's.

Usage: walks.py FOLDER. For each NAME the folder contains NAME.safetensors (an artifact, see docs/artifact.md) and NAME.walks
(tokens [steps, walks] and legal tokens as bits [steps, walks, vocab_size / 8]).
"""

import hashlib
import pathlib
import struct
import sys

import numpy as np
from safetensors import safe_open

NO_PATH = np.iinfo(np.int32).max


def load(path):
    with safe_open(path, framework="np") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}


def checksum(metadata, tensors):
    """The checksum of docs/artifact.md."""
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


class Constraint:
    """A compiled constraint, and the stacks of its rows: a tree of frames. A row's stack is the path from its top to frame 0."""

    def __init__(self, path):
        metadata, tensors = load(path)
        form = metadata["form"]
        assert metadata["format"] == "burn-dfa compiled constraint" and metadata["format_version"] == "1"
        assert metadata["checksum"] == checksum(metadata, tensors)
        self.start = int(metadata["start"])
        self.next = tensors["next"]
        if form == "token_level":
            self.columns = tensors["class"][:, None]
        else:
            # Tokens as rows of columns, padded with -1 to the longest.
            offsets, columns = tensors["offsets"], tensors["column"][tensors["symbols"]]
            lengths = np.diff(offsets)
            self.columns = np.full((len(lengths), lengths.max()), -1)
            self.columns[np.arange(lengths.max()) < lengths[:, None]] = columns
        if form == "pushdown":
            self.jumps, self.max_frames = tensors["jumps"], int(metadata["frames"])
            self.to_exit, self.height = tensors["tokens_to_exit"], tensors["frames_to_exit"]
        else:
            self.to_exit = tensors["tokens_to_end"][:, None]
            self.jumps, self.max_frames = np.zeros((len(self.next), 2), int), 0
            self.height = np.zeros_like(self.to_exit)
        # In forced text only the longest token is legal: some states forbid tokens of fewer symbols.
        self.lengths = (self.columns >= 0).sum(1)
        self.shortest = tensors.get("shortest", np.zeros(len(self.next), int))
        # For each frame: the call state, the frame below, the depth, the cost of each exit. Frame 0 means "no frame".
        bottom = np.full((1, self.to_exit.shape[1]), NO_PATH)
        bottom[0, 0] = 0
        self.call, self.below, self.depth, self.costs = np.array([0]), np.array([0]), np.array([0]), bottom

    def to_end(self, states, tops):
        """The least number of tokens to the end from states, on stacks given by one top frame per row."""
        cost, depth = self.costs[tops], self.depth[tops]
        while cost.ndim <= states.ndim:
            cost, depth = cost[:, None], depth[:, None]
        to_exit, height = self.to_exit[states], self.height[states]
        fits = (to_exit < NO_PATH) & (cost < NO_PATH) & (depth[..., None] + height <= self.max_frames)
        return np.where(fits, to_exit + cost, NO_PATH).min(-1)

    def settle(self, states, tops):
        """Computes the epsilon closures of rows: pushes call states, and pops for return states."""
        while (jumps := self.jumps[states, 0]).any():
            fits, empty = self.depth[tops] < self.max_frames, tops == 0
            push, back = (jumps > 0) & fits, (jumps < 0) & ~empty
            # Read the call states before `states` changes.
            call, below = states[push], tops[push]
            to = self.jumps[call, 1:]
            costs = np.where(to == 0, NO_PATH, self.to_end(to, below))
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
        return np.where(self.to_end(states, tops) == NO_PATH, 0, states), tops

    def advance(self, states, tops, tokens):
        """The states and stacks of rows after tokens."""
        short = self.lengths[tokens] < self.shortest[states]
        after, tops = self.after(states, tops, self.columns[tokens])
        return np.where(short, 0, after), tops

    def legal(self, states, tops, spare):
        """The legal tokens, with `spare` tokens left after them: [rows, vocabulary]."""
        positions, where = np.unique(np.stack([states, tops]), axis=1, return_inverse=True)
        vocab_size, known = len(self.columns), len(self.call)
        after, tops = self.after(*positions.repeat(vocab_size, 1), np.tile(self.columns, (positions.shape[1], 1)))
        legal = (after != 0) & (self.to_end(after, tops) <= spare)
        legal &= np.tile(self.lengths, positions.shape[1]) >= self.shortest[positions[0]].repeat(vocab_size)
        # No row uses the frames of the trial.
        self.call, self.below, self.depth, self.costs = (
            frames[:known] for frames in (self.call, self.below, self.depth, self.costs)
        )
        return legal.reshape(-1, vocab_size)[where.reshape(-1)]


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")):
        constraint = Constraint(path)
        _, walks = load(path.with_suffix(".walks"))
        steps, count = walks["tokens"].shape
        states, tops = np.full(count, constraint.start), np.zeros(count, int)
        for step in range(steps):
            legal = np.packbits(constraint.legal(states, tops, steps - step - 1), axis=-1, bitorder="little")
            different = (legal != walks["masks"][step]).any(-1).nonzero()[0]
            assert not len(different), f"{path.stem}: step {step}, walk {different[0]}: another mask"
            states, tops = constraint.advance(states, tops, walks["tokens"][step])
        print(f"{path.stem}: {count} walks of {steps} tokens, at most {constraint.depth.max()} frames, all masks equal")


main()
