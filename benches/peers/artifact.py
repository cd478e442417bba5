"""Reads an artifact of burn-dfa with numpy and computes its masks, without the library: docs/artifact.md."""

import json
from typing import Any

import numpy as np

DEAD, NEVER_ENDS = 0, np.iinfo(np.int32).max
Position = tuple[int, Any]


class Artifact:
    """The arrays of an artifact.

    A position is a state and a stack. A stack is None, or the call state, the stack below it, its depth and the cost of each
    exit.
    """

    def __init__(self, data: bytes) -> None:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        self.metadata = header.pop("__metadata__")
        arrays = {}
        for name, entry in header.items():
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            kind = {"I32": np.int32, "U16": np.uint16}[entry["dtype"]]
            arrays[name] = np.frombuffer(data[begin:end], dtype=kind).reshape(entry["shape"])
        self.next = arrays["next"]
        if "class" in arrays:
            self.offsets = np.arange(len(arrays["class"]) + 1)
            self.columns = arrays["class"]
        else:
            self.offsets = arrays["offsets"]
            self.columns = arrays["column"][arrays["symbols"]]
        if "jumps" in arrays:
            self.jumps, self.to_exit, self.heights = arrays["jumps"], arrays["tokens_to_exit"], arrays["frames_to_exit"]
            self.frames = int(self.metadata["frames"])
        else:
            self.jumps = None
            self.to_end = arrays["tokens_to_end"]
        self.masks: dict[Position, np.ndarray] = {}
        self.ordered = np.argsort(-np.diff(self.offsets), kind="stable")

    def start(self) -> Position:
        return self.settle(int(self.metadata["start"]), None)

    def settle(self, state: int, stack: Any) -> Position:
        """Follows calls and returns."""
        while self.jumps is not None and (jump := int(self.jumps[state, 0])):
            if jump > 0:
                depth = stack[2] if stack else 0
                if depth == self.frames:
                    return DEAD, None
                returns = self.jumps[state, 1:]
                costs = tuple(NEVER_ENDS if to == DEAD else self.distance(int(to), stack) for to in returns)
                state, stack = jump, (state, stack, depth + 1, costs)
            elif stack is None:
                return DEAD, None
            else:
                state, stack = int(self.jumps[stack[0], -jump]), stack[1]
        return state, stack

    def distance(self, state: int, stack: Any) -> int:
        """The least number of tokens to the end."""
        if self.jumps is None:
            return int(self.to_end[state])
        depth = stack[2] if stack else 0
        least = NEVER_ENDS
        for tokens, height, exit_number in zip(self.to_exit[state], self.heights[state], range(self.to_exit.shape[1])):
            cost = stack[3][exit_number] if stack else 0 if exit_number == 0 else NEVER_ENDS
            if tokens < NEVER_ENDS and cost < NEVER_ENDS and depth + height <= self.frames:
                least = min(least, int(tokens) + cost)
        return least

    def step(self, position: Position, column: int) -> Position:
        return self.settle(int(self.next[position[0], column]), position[1])

    def after(self, position: Position, token: int) -> Position | None:
        """The position after a token; None if the token is illegal."""
        for column in self.columns[self.offsets[token] : self.offsets[token + 1]]:
            position = self.step(position, int(column))
            if position[0] == DEAD:
                return None
        return position if self.distance(*position) < NEVER_ENDS else None

    def mask(self, position: Position) -> np.ndarray:
        """Whether each token is legal: all tokens take a step together, and equal steps are computed once."""
        if position not in self.masks:
            lengths = np.diff(self.offsets)
            legal = np.zeros(len(lengths), dtype=bool)
            positions, live = [position], self.ordered
            at = np.zeros(len(live), dtype=np.int64)
            for index in range(int(lengths.max())):
                columns = self.columns[self.offsets[live] + index]
                steps, inverse = np.unique(at * self.next.shape[1] + columns, return_inverse=True)
                numbers: dict[Position, int] = {}
                numbered = []
                for number in steps:
                    after = self.step(positions[number // self.next.shape[1]], int(number % self.next.shape[1]))
                    numbered.append(-1 if after[0] == DEAD else numbers.setdefault(after, len(numbers)))
                positions = list(numbers)
                ends = np.array([self.distance(*after) < NEVER_ENDS for after in positions], dtype=bool)
                at = np.array(numbered)[inverse]
                live, at = live[at >= 0], at[at >= 0]
                done = lengths[live] == index + 1
                legal[live[done]] = ends[at[done]]
                live, at = live[~done], at[~done]
                if not len(live):
                    break
            self.masks[position] = legal
        return self.masks[position]
