"""Arrays for ops of neural networks, and what some of these ops give, worked out in NumPy."""

import itertools
from collections import Counter
from typing import Any

import numpy as np


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def grouped(x: np.ndarray, groups: int, axis: int, epsilon: float, strided: bool) -> np.ndarray:
    """Group norm as the paper writes it, channel by channel."""
    x = np.moveaxis(x, axis, -1).astype(np.float64)
    result, channels = np.empty_like(x), x.shape[-1]
    for group in range(groups):
        mine = [c for c in range(channels) if (c % groups if strided else c // (channels // groups)) == group]
        for sample in range(len(x)):
            part = x[sample][..., mine]
            result[sample][..., mine] = (part - part.mean()) / np.sqrt(part.var() + epsilon)
    return np.moveaxis(result, -1, axis)


def all_paths(log_probs: np.ndarray, blank: int) -> Counter[tuple[int, ...]]:
    """The probability of each label sequence, from all paths one by one."""
    times, classes = log_probs.shape
    found: Counter[tuple[int, ...]] = Counter()
    for path in itertools.product(range(classes), repeat=times):
        collapsed = tuple(label for label, _ in itertools.groupby(path) if label != blank)
        found[collapsed] += np.exp(sum(log_probs[time, label] for time, label in enumerate(path)))
    return found
