"""A 3 x 3 blur of 2200 x 1122 numbers, 1,000 times: `tf-ipu fit --system dss8440 -m benchmarks.published.stencil 16`.

Argument: IPUs. Each has its share of the rows, and sends its outer ones to its neighbours in every iteration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

ROWS, COLUMNS, TIMES = 2200, 1122, 1000
WEIGHTS = np.outer([0.25, 0.5, 0.25], [0.25, 0.5, 0.25]).astype(np.float32)


def blurred(above: Any, part: Any, below: Any) -> Any:
    """Returns the middle rows after one iteration; beyond the columns there are zeros."""
    rows = part.shape[0]
    padded = tf.pad(tf.concat([above, part, below], 0), [[0, 0], [1, 1]])
    return sum(
        WEIGHTS[row, column] * padded[row : row + rows, column : column + COLUMNS]
        for row in range(3)
        for column in range(3)
    )


def step(*parts: Any) -> list[Any]:
    """One iteration, a shard a part."""
    edges = []
    for shard, part in enumerate(parts):
        with ipu.scopes.ipu_shard(shard):
            edges.append((part[:1], part[-1:]))
    made = []
    for shard, part in enumerate(parts):
        with ipu.scopes.ipu_shard(shard):
            outside = tf.zeros([1, COLUMNS])
            above = edges[shard - 1][1] if shard else outside
            below = edges[shard + 1][0] if shard + 1 < len(parts) else outside
            made.append(blurred(above, part, below))
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
        shares = np.array_split(np.ones((ROWS, COLUMNS), np.float32), ipus)
        strategy.run(stencil, args=[tf.constant(share) for share in shares])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
