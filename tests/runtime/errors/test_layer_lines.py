"""The script's line of what Keras' `fit` runs: that which makes the layer."""

import collections
import inspect
import re

import numpy as np
import pytest
import tensorflow as tf
from harness import configure_for_plans
from tf_ipu_shim.ipu import ipu_strategy

from tf_ipu_shim import ipu, keras2, memory_report
from tf_ipu_shim.compiler.checks import diagnostics
from tf_ipu_shim.runtime.errors import layer_lines

keras = keras2.public_module()


def here():
    return inspect.currentframe().f_back.f_lineno


class Doubled(keras.layers.Layer):
    """A script's own layer: its constructor is no place to tell."""

    def __init__(self, units):
        super().__init__(name="doubled")
        self.units = units

    def build(self, shape):
        self.kernel = self.add_weight("kernel", [shape[-1], self.units])

    def call(self, x):
        return keras.backend.dot(x, self.kernel)  # its product


CALL_LINE = inspect.getsourcelines(Doubled.call)[1] + 1


def owners(model):
    """The lines of a training program's largest owners, by their names."""
    x, y = np.zeros([64, *model.input_shape[1:]], np.float32), np.zeros([64, *model.output_shape[1:]], np.float32)
    model.compile("sgd", "mse", steps_per_execution=4)
    model.fit(x, y, batch_size=16, verbose=0)
    plan = max(memory_report().devices[0].programs, key=lambda one: one.peak_bytes)
    found = {owner.name: owner.line for one in plan.ipus for owner in one.owners}
    return {name: int(line.rsplit(":", 1)[1].split(",")[0]) for name, line in found.items() if line}


@pytest.fixture
def scope(monkeypatch):
    monkeypatch.setattr(layer_lines, "_made", {})
    configure_for_plans(1)
    with ipu_strategy.IPUStrategy().scope():
        yield


def test_ops_and_variables_have_the_line_of_their_layer(scope):
    inputs = keras.Input([300])
    first, first_line = keras.layers.Dense(400, "relu", name="first"), here()
    x = first(inputs)
    own, own_line = Doubled(500), here()
    model = keras.Model(inputs, own(x))
    lines = owners(model)
    named = {name for name in lines if "first" in name.split("/")}
    assert named and {lines[name] for name in named} == {first_line}
    assert {lines[name] for name in lines if name.startswith("doubled/")} == {own_line}  # its variable
    # What it computes has the line in its call, and so have the gradients of that.
    computed = {name: line for name, line in lines.items() if "doubled" in name.split("/")[1:-1]}
    assert set(computed.values()) == {CALL_LINE}
    assert any(name.startswith("gradient_tape/") for name in computed)
    assert layer_lines.line_of("while/model/doubled/MatMul").endswith(f":{own_line}, in {inspect.stack()[0].function}")


class Gated(keras.layers.Layer):
    """A script's own layer with a layer of Keras in it, and lines of its own."""

    def __init__(self, units, name):
        super().__init__(name=name)
        self.inner = keras.layers.Dense(units, name=f"{name}_inner")

    def call(self, x):
        product = self.inner(x)
        scaled = product * 3.0
        return keras.backend.tanh(scaled)


def line_in_call(text):
    lines, first = inspect.getsourcelines(Gated.call)
    return next(first + number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("stages", [1, 2])
def test_ops_of_a_layer_of_the_script_s_own_have_its_lines(monkeypatch, stages):
    monkeypatch.setattr(layer_lines, "_made", {})
    configure_for_plans(stages)
    found = {}
    user_line = diagnostics.Diagnostics.user_line

    def noted(self, function, node):
        found[node] = user_line(self, function, node)
        return found[node]

    monkeypatch.setattr(diagnostics.Diagnostics, "user_line", noted)
    with ipu_strategy.IPUStrategy().scope():
        model = keras.Sequential([keras.Input([40]), Gated(500, "gated"), keras.layers.Dense(8, name="last")])
        if stages > 1:
            model.set_pipeline_stage_assignment([0, 1])
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
        owners(model)
    ipu.config.reset_ipu_configuration()
    seen = collections.Counter()
    for node, line in found.items():
        for name, text in (("mul", "scaled = "), ("Tanh", "return "), ("gated_inner", "self.inner(x)")):
            if name in re.split("/|_grad", node) and "gated" in node and not {"kernel", "bias"} & {*node.split("/")}:
                assert line == f"{__file__}:{line_in_call(text)}, in call", node
                seen["gradient" if "gradient" in node else "forward", name] += 1
    assert {("forward", "gated_inner"), ("gradient", "gated_inner")} <= {*seen} and len(seen) > 2, seen


def test_layers_of_one_name_made_at_several_lines_have_none(scope):
    made = [keras.layers.Dense(4, name="same")]
    line = here() - 1
    assert layer_lines.line_of("model/same/MatMul").endswith(f":{line}, in {inspect.stack()[0].function}")
    made.append(keras.layers.Dense(4, name="same"))
    assert layer_lines.line_of("model/same/MatMul") is None
    del made[0]
    assert layer_lines.line_of("model/same/MatMul") is not None  # that of the other, which is alive
    assert layer_lines.line_of("same") is None and layer_lines.line_of("model/other/MatMul") is None


def test_layers_of_one_name_have_their_lines_in_their_own_models(scope):
    """Both models live, and are called in graphs of their own."""
    first, first_line = keras.Sequential([keras.layers.Dense(400, input_shape=[300], name="twin")]), here()
    second, second_line = keras.Sequential([keras.layers.Dense(500, input_shape=[300], name="twin")]), here()
    for model, line in ((first, first_line), (second, second_line)):
        lines = owners(model)
        computed = {name: found for name, found in lines.items() if "twin" in name.split("/")[1:-1]}
        assert computed and set(computed.values()) == {line}, lines


def test_layers_of_one_name_in_one_graph(monkeypatch):
    """One that is called inside another's scope is the innermost; two in one scope have no line."""
    monkeypatch.setattr(layer_lines, "_made", {})
    a, b = keras.layers.Dense(2, name="a"), keras.layers.Dense(2, name="a")
    for layer, where in ((a, "a.py:1, in f"), (b, "b.py:2, in g")):
        object.__setattr__(layer, "_ipu_made_at", where)
    graph, other = tf.Graph(), tf.Graph()
    layer_lines.note_call(a, graph, "model/a/")
    layer_lines.note_call(b, other, "model/a/")
    assert layer_lines.line_of("model/a/MatMul", graph) == "a.py:1, in f"
    assert layer_lines.line_of("model/a/MatMul", other) == "b.py:2, in g"
    layer_lines.note_call(b, graph, "model/a/")
    assert layer_lines.line_of("model/a/MatMul", graph) is None
