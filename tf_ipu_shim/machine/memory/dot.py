"""Writes a program's schedule as a DOT graph for Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tf_ipu_shim.machine.memory.description import Block
from tf_ipu_shim.machine.memory.liveness import order_of


def dot_of(program: str, blocks: Mapping[int, Block], line_of: Callable[[str], str | None]) -> str:
    """Returns a graph of each IPU's steps and the values between them.

    Steps are boxes, numbered in the order in which they run; values that exist before the program, such as variables,
    are ellipses. An arrow is labelled with the bytes of its value. Steps within a step (the body of a loop, a branch)
    are a frame that a dashed arrow points to.

    Example:
        >>> block = Block("nothing")
        >>> print(dot_of("empty", {0: block}, lambda op: None), end="")
        digraph "empty" {
          node [shape=box]
          subgraph cluster_0 {
            label="IPU 0"
          }
        }
    """
    drawing = _Drawing(line_of)
    for ipu, block in sorted(blocks.items()):
        drawing.frame(f"IPU {ipu}", block, "  ")
    return "\n".join([f"digraph {_quoted(program)} {{", "  node [shape=box]", *drawing.lines, "}", ""])


class _Drawing:
    def __init__(self, line_of: Callable[[str], str | None]) -> None:
        self._line_of = line_of
        self._frames = self._nodes = self._runs = 0
        self.lines: list[str] = []

    def frame(self, label: str, block: Block, indent: str) -> str | None:
        """Draws a block; returns the name of its first step, None if it has none."""
        self.lines.append(f"{indent}subgraph cluster_{self._frames} {{")
        self._frames += 1
        inside = indent + "  "
        self.lines.append(f"{inside}label={_quoted(label)}")
        first: str | None = None
        nodes: dict[int, str] = {}  # what makes each value, by its number
        for index in order_of(block):
            step = block.steps[index]
            outer_inputs = [value_id for value_id in step.inputs if value_id not in nodes]
            for value_id in outer_inputs:
                nodes[value_id] = self._node(block.values[value_id].owner, inside, ", shape=ellipse")
            self._runs += 1
            line = self._line_of(step.owner)
            name = self._node(f"{self._runs} {step.owner}" + (f"\n{line}" if line else ""), inside)
            first = first or name
            for value_id in step.inputs:
                self.lines.append(f'{inside}{nodes[value_id]} -> {name} [label="{block.values[value_id].bytes:,} B"]')
            for inner in step.inside:
                begins = self.frame(inner.name, inner, inside)
                if begins is not None:
                    self.lines.append(f"{inside}{name} -> {begins} [style=dashed]")
            nodes.update(dict.fromkeys(step.outputs, name))
        self.lines.append(f"{indent}}}")
        return first

    def _node(self, label: str, indent: str, more: str = "") -> str:
        name = f"n{self._nodes}"
        self._nodes += 1
        self.lines.append(f"{indent}{name} [label={_quoted(label)}{more}]")
        return name


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
