"""A 3 x 3 blur of an image, 100,000 times: `tf-ipu fit --system dss8440 -m benchmarks.published.stencil 16`.

Argument: IPUs. Each has a part of the image, and sends its outer rows, columns and corners to its neighbours in every
iteration. Image and parts are those of the published program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

ROWS, COLUMNS, CHANNELS, TIMES = 1122, 2200, 4, 100_000
WEIGHTS = np.outer([0.25, 0.5, 0.25], [0.25, 0.5, 0.25]).astype(np.float32)
GRIDS = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (2, 4), 16: (4, 4)}
"""Rows and columns of parts, by the number of IPUs."""
SENT = {-1: slice(-1, None), 0: slice(None), 1: slice(1)}
"""The rows or columns that a neighbour on this side sends."""


def neighbour(shard: int, row: int, column: int, grid: tuple[int, int]) -> int | None:
    """Returns the shard at a distance in rows and columns."""
    row, column = shard // grid[1] + row, shard % grid[1] + column
    return row * grid[1] + column if 0 <= row < grid[0] and 0 <= column < grid[1] else None


def with_edges(shard: int, parts: Sequence[Any], grid: tuple[int, int]) -> Any:
    """Returns a part with the edges of its neighbours; beyond the image there are zeros."""
    rows, columns, _ = parts[shard].shape
    lengths = {-1: (1, 1), 0: (rows, columns), 1: (1, 1)}
    lines = []
    for down in SENT:
        line = []
        for right in SENT:
            other = neighbour(shard, down, right, grid)
            if other is None:
                line.append(tf.zeros([lengths[down][0], lengths[right][1], CHANNELS]))
                continue
            with ipu.scopes.ipu_shard(other):
                line.append(parts[other][SENT[down], SENT[right]])
        lines.append(tf.concat(line, 1))
    return tf.concat(lines, 0)


def blurred(padded: Any, rows: int, columns: int) -> Any:
    """Returns the blurred part of an image with its edges."""
    return sum(
        WEIGHTS[row, column] * padded[row : row + rows, column : column + columns]
        for row in range(3)
        for column in range(3)
    )


def step(*parts: Any) -> list[Any]:
    """One iteration, a shard a part."""
    made = []
    for shard, part in enumerate(parts):
        with ipu.scopes.ipu_shard(shard):
            made.append(blurred(with_edges(shard, parts, GRIDS[len(parts)]), *part.shape[:2]))
    return made


def main(ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    strategy = ipu.ipu_strategy.IPUStrategy()

    @tf.function(jit_compile=True)
    def stencil(*parts: Any) -> Sequence[Any]:
        return ipu.loops.repeat(TIMES, step, list(parts))  # type: ignore[no-any-return]

    with strategy.scope():
        rows, columns = GRIDS[ipus]
        image = np.ones((ROWS, COLUMNS, CHANNELS), np.float32)
        shares = [part for line in np.array_split(image, rows) for part in np.array_split(line, columns, 1)]
        strategy.run(stencil, args=[tf.constant(share) for share in shares])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
