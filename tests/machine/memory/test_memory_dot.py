"""The schedule in the DOT language: read back with regular expressions, as there is no Graphviz here."""

import re

import pytest

from tf_ipu_shim.machine.memory import Block, Value
from tf_ipu_shim.machine.memory.dot import dot_of

pytestmark = pytest.mark.without_tensorflow


def test_steps_are_in_order_and_connected_by_values():
    block, body = Block("all"), Block("body")
    weight = block.add(Value(2_000, "weight", "weight"))
    x, y, z = (block.add(Value(100 * size, name, "temporary")) for size, name in ((1, "x"), (2, "y"), (3, "z")))
    inner = body.add(Value(7, "inner", "temporary"))
    body.run("inner", (), (inner,))
    for step in (("x", (), (x,)), ("y", (weight, x), (y,)), ('the "loop"', (y,), (z,), (body,))):
        block.run(*step)
        block.begin_segment()
    text = dot_of("step", {0: Block("nothing"), 3: block}, {"y": "train.py:3"}.get)

    assert text.startswith('digraph "step" {\n') and text.endswith("}\n")
    assert text.count("{") == text.count("}") == 4  # the graph, two IPUs and a body
    labels = dict(re.findall(r'(?m)^ +(n\d+) \[label="((?:[^"\\]|\\.)*)"', text))
    arrows = [(labels[a], labels[b], what) for a, b, what in re.findall(r"(n\d+) -> (n\d+) \[(.*)\]", text)]
    assert arrows == [
        ("weight", r"2 y\ntrain.py:3", 'label="2,000 B"'),
        ("1 x", r"2 y\ntrain.py:3", 'label="100 B"'),
        (r"2 y\ntrain.py:3", r"3 the \"loop\"", 'label="200 B"'),
        (r"3 the \"loop\"", "4 inner", "style=dashed"),
    ]
    assert re.findall(r'^ +label="(.*)"$', text, re.M) == ["IPU 0", "IPU 3", "body"]
    assert re.findall(r'label="(.*)", shape=ellipse', text) == ["weight"]
