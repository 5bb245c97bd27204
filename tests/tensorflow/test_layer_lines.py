"""The script's line of what Keras' `fit` runs: that which makes the layer."""

import inspect

import numpy as np
import pytest
from harness import configure_for_plans
from tf_ipu_shim.ipu import ipu_strategy

from tf_ipu_shim import ipu, keras2, memory_report
from tf_ipu_shim.runtime import layer_lines

keras = keras2.public()


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
        return keras.backend.dot(x, self.kernel)


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
    ipu.config.reset_ipu_configuration()


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
    assert {lines[name] for name in lines if "doubled" in name.split("/")[1:-1]} == {own_line}
    assert layer_lines.line_of("while/model/doubled/MatMul").endswith(f":{own_line}, in {inspect.stack()[0].function}")


def test_layers_of_one_name_that_are_made_at_several_lines_have_none(scope):
    made = [keras.layers.Dense(4, name="same")]
    line = here() - 1
    assert layer_lines.line_of("model/same/MatMul").endswith(f":{line}, in {inspect.stack()[0].function}")
    made.append(keras.layers.Dense(4, name="same"))
    assert layer_lines.line_of("model/same/MatMul") is None
    del made[0]
    assert layer_lines.line_of("model/same/MatMul") is not None  # that of the other, which is alive
    assert layer_lines.line_of("same") is None and layer_lines.line_of("model/other/MatMul") is None
