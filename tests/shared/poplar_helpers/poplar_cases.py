"""Reads what the program of the libraries' cases wrote: inputs, outputs and messages by case."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy

TYPES = {
    "float": numpy.float32,
    "half": numpy.float16,
    "int": numpy.int32,
    "unsigned int": numpy.uint32,
    "short": numpy.int16,
    "unsigned short": numpy.uint16,
    "unsigned char": numpy.uint8,
    "long long": numpy.int64,
    "bool": numpy.bool_,
}


@dataclasses.dataclass
class Case:
    """One case: arrays by name, and the messages of calls that must fail."""

    inputs: dict[str, numpy.ndarray] = dataclasses.field(default_factory=dict)
    outputs: dict[str, numpy.ndarray] = dataclasses.field(default_factory=dict)
    errors: dict[str, str] = dataclasses.field(default_factory=dict)


def read_cases(index: pathlib.Path, data: pathlib.Path) -> dict[str, Case]:
    """The cases of an index and its data, by name."""
    content, cases = data.read_bytes(), {}
    for line in index.read_text().splitlines():
        case, role, name, *rest = line.split("\t")
        kept = cases.setdefault(case, Case())
        if role == "error":
            kept.errors[name] = rest[0]
            continue
        shape = tuple(map(int, rest[2].split()))
        values = numpy.frombuffer(content, TYPES[rest[0]], numpy.prod(shape, dtype=int), int(rest[1]))
        (kept.inputs if role == "input" else kept.outputs)[name] = values.reshape(shape)
    return cases
