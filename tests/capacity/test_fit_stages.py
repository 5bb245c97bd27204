"""`tf-ipu fit` of pipelines: the stages that it cuts anew, and what they have to do."""

import textwrap

import numpy as np
import pytest
import tensorflow as tf
from slow_cases import slowly

from tf_ipu_shim import capacity, ipu, keras2
from tf_ipu_shim.capacity import stages
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.runtime import captured_programs

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


def test_the_stages_that_are_printed_can_be_pasted(studied):
    keras = keras2.public_module()
    models = []

    def run():
        layers = [keras.layers.Dense(width, "relu", name=f"layer{width}") for width in (32, 33, 34)]
        model = keras.Sequential([keras.Input([20]), layers[0], keras.layers.Dropout(0.1, name="drop"), *layers[1:]])
        model.compile("sgd", "mse", steps_per_execution=2)
        model.fit(np.zeros([8, 20], np.float32), np.zeros([8, 34], np.float32), batch_size=4, verbose=0)
        models.append(model)
        made = max(captured_programs._programs, key=lambda one: len(one.blocks[0].values))
        lines = stages.to_text(
            stages.split(stages.layers_of(made, CHIPS["gc200"]), CHIPS["gc200"], times=made.steps), CHIPS["gc200"]
        )
        exec(textwrap.dedent("\n".join(pasted(lines))), {"model": model})
        models.extend(model.get_pipeline_stage_assignment())
        model.compile("sgd", "mse", steps_per_execution=4)
        model.fit(np.zeros([16, 20], np.float32), np.zeros([16, 34], np.float32), batch_size=4, verbose=0)

    studied(run, 2)
    _, *assignments = models
    assert [one.layer.name for one in assignments] == ["layer32", "drop", "layer33", "layer34"]
    numbers = [one.pipeline_stage for one in assignments]
    assert numbers[0] == numbers[1] == 0 and numbers[-1] == 1 and numbers == sorted(numbers)


def test_a_pipeline_whose_stages_are_uneven_is_cut_anew(studied):
    keras = keras2.public_module()

    def steps_of(cut):
        def run():
            widths = (64, 512, 512, 512, 8)
            layers = [keras.layers.Dense(width, "relu", name=f"layer{place}") for place, width in enumerate(widths)]
            model = keras.Sequential([keras.Input([20]), *layers[:2], keras.layers.Dropout(0.1), *layers[2:]])
            cut(model)
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
            model.compile("sgd", "mse", steps_per_execution=8)
            model.fit(np.zeros([64, 20], np.float32), np.zeros([64, 8], np.float32), batch_size=8, verbose=0)

        return max(studied(run, 2), key=lambda one: one.steps)

    def pastes(model):
        exec(textwrap.dedent("\n".join(pasted(lines))), {"model": model})

    chip = CHIPS["gc200"]
    uneven = steps_of(lambda model: model.set_pipeline_stage_assignment([0, 1, 1, 1, 1, 1]))
    lines = stages.to_text(stages.better_split(uneven, chip, fits=True), chip)
    even = steps_of(pastes)
    assert uneven.plan.coarse == even.plan.coarse == ()
    assert [layer.ipu for layer in stages.layers_of(uneven, chip)] == [0, 1, 1, 1, 1]
    assert len(even.blocks) == 2 and stages.better_split(even, chip, fits=True) is None
    assert capacity.estimate(even, chip).cycles < 0.8 * capacity.estimate(uneven, chip).cycles


@pytest.mark.parametrize("io_tiles", [0, 32])
def test_layers_have_the_work_of_all_iterations(studied, io_tiles):
    keras = keras2.public_module()
    batches = 16

    def run():
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 1
        config.allow_recompute = True
        config.io_tiles.num_io_tiles = io_tiles
        config.io_tiles.place_ops_on_io_tiles = io_tiles > 0
        config.configure_ipu_system()
        layers = [keras.layers.Dense(64, "relu", name=f"layer{place}") for place in range(3)]
        model = keras.Sequential([keras.Input([64]), *layers])
        model.compile(steps_per_execution=batches)
        model.predict(np.zeros([8 * batches, 64], np.float32), batch_size=8, verbose=0)

    program = max(studied(run, 1), key=lambda one: one.steps)
    found = stages.layers_of(program, CHIPS["gc200"])
    assert [layer.name for layer in found] == ["layer0", "layer1", "layer2"]
    assert all(layer.forward_cycles > 0 for layer in found)
    assert {layer.forward_cycles % batches for layer in found} == {0}, "all iterations are equal"


def test_host_copies_are_work_of_the_first_and_last_stage(studied):
    keras = keras2.public_module()

    def steps_of(begins):
        def run():
            layers = [keras.layers.Dense(512, "relu", name=f"layer{place}") for place in range(8)]
            model = keras.Sequential([keras.Input([4096]), *layers])
            model.set_pipeline_stage_assignment([int(place >= begins) for place in range(8)])
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
            model.compile("sgd", "mse", steps_per_execution=8)
            model.fit(np.zeros([512, 4096], np.float32), np.zeros([512, 512], np.float32), batch_size=64, verbose=0)

        return max(studied(run, 2), key=lambda one: one.steps)

    chip, even = CHIPS["gc200"], steps_of(4)
    found = stages.better_split(even, chip, fits=True)
    begins = len(found.stages[0])
    better = capacity.estimate(steps_of(begins), chip)
    assert begins < 4 and better.cycles < capacity.estimate(even, chip).cycles
    assert found.cycles[0] / found.cycles[1] == pytest.approx(better.busy[0] / better.busy[1], rel=0.02)


@pytest.mark.slow
def test_stages_that_recompute_have_less_to_do_than_the_last_one(studied):
    """They run their forward pass twice, and keep what comes into them."""
    keras = keras2.public_module()
    widths = [*(512 + place for place in range(15)), 16]

    def steps_of(begins):
        def run():
            layers = [keras.layers.Dense(width, "relu", name=f"layer{place}") for place, width in enumerate(widths)]
            model = keras.Sequential([keras.Input([16]), *layers])
            assignments = model.get_pipeline_stage_assignment()
            for number, assignment in enumerate(assignments):
                assignment.pipeline_stage = int(number >= begins)
            model.set_pipeline_stage_assignment(assignments)
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
            model.compile("sgd", "mse", steps_per_execution=8)
            x, y = np.zeros([2048, 16], np.float32), np.zeros([2048, 16], np.float32)
            model.fit(x, y, batch_size=256, verbose=0)

        return max(studied(run, 2, recompute=True), key=lambda one: one.steps)

    chip, even = CHIPS["gc200"], steps_of(8)
    layers = stages.layers_of(even, chip)
    taken = [(), *(((place, 256 * 4 * width),) for place, width in enumerate(widths[:-1]))]
    assert [layer.inputs for layer in layers] == taken
    assert layers[0].fed_bytes == 256 * 4 * 16
    assert all(0 < layer.forward_cycles < 0.6 * layer.cycles for layer in layers)
    found = stages.better_split(even, chip, fits=True)
    assert [len(part) for part in found.stages] == [7, 9]
    assert stages.to_text(found, chip)[0].endswith("cycles balanced, with recomputation (Keras):")
    better = steps_of(7)
    assert stages.better_split(better, chip, fits=True) is None
    assert capacity.estimate(better, chip).cycles < capacity.estimate(even, chip).cycles
    for layer, other in zip(layers, stages.layers_of(better, chip)):
        assert layer.cycles == pytest.approx(other.cycles, rel=0.05)
    for stage, full in enumerate(found.bytes):
        assert full == pytest.approx(better.plan.ipus[stage].peak_bytes, rel=0.1)


def _attention(keras):
    words = keras.Input([64], dtype="int32")
    x = keras.layers.Embedding(2000, 128, name="words")(words)
    for number in range(2):
        attention = keras.layers.MultiHeadAttention(4, 32, name=f"attention{number}")(x, x)
        x = keras.layers.LayerNormalization(name=f"norm{number}")(keras.layers.Add(name=f"add{number}")([x, attention]))
        x = keras.layers.Dense(128, "gelu", name=f"dense{number}")(x)
    return keras.Model(words, keras.layers.Dense(4, name="last")(x[:, 0]))


def _convolutions(keras):
    made = [keras.layers.Conv2D(width, 3, activation="relu", name=f"conv{width}") for width in (16, 32, 48)]
    rest = [keras.layers.MaxPool2D(2), keras.layers.Flatten(), keras.layers.Dense(10, "softmax", name="last")]
    return keras.Sequential([keras.Input([24, 24, 3]), *made, *rest])


def _handed_on(keras):
    inputs = keras.Input([256])
    first = x = keras.layers.Dense(512, "relu", name="first")(inputs)
    for number in range(5):
        dense = keras.layers.Dense(512, "tanh", name=f"dense{number}")(x)
        x = keras.layers.LayerNormalization(name=f"norm{number}")(dense)
    return keras.Model(inputs, keras.layers.Dense(32, name="last")(keras.layers.Add(name="add")([x, first])))


@pytest.mark.parametrize(
    "make, optimizer, recompute",
    [
        (_attention, "sgd", False),
        slowly(_convolutions, "adam", False),
        slowly(_handed_on, "adam", False),
        slowly(_handed_on, "sgd", True),
    ],
)
def test_the_balance_that_is_printed_is_that_of_the_pipeline(studied, make, optimizer, recompute):
    """Of a model on one IPU: with exchanges, the optimizer's work, sums of gradients, the loss, what the host gives."""
    keras = keras2.public_module()

    def steps_of(lines=None):
        def run():
            model = make(keras)
            if lines is not None:
                exec(textwrap.dedent("\n".join(pasted(lines))), {"model": model})
                model.set_pipelining_options(gradient_accumulation_steps_per_replica=8)
            model.compile(optimizer, "mse", steps_per_execution=8)
            x, y = (np.zeros([256, *shape[1:]], np.float32) for shape in (model.input_shape, model.output_shape))
            model.fit(x, y, batch_size=32, verbose=0)

        return max(studied(run, 1 if lines is None else 4, recompute=recompute), key=lambda one: one.steps)

    chip, alone = CHIPS["gc200"], steps_of()
    found = stages.split(stages.layers_of(alone, chip), chip, 4, recompute, alone.steps)
    made = steps_of(stages.to_text(found, chip))
    places = {layer.name: layer.ipu for layer in stages.layers_of(made, chip)}
    busy = capacity.estimate(made, chip).busy
    numbers = sorted(places.values())
    really = [busy[sorted(set(numbers)).index(places[names[0]])] for names in found.stages]
    assert list(found.cycles) == pytest.approx(really, rel=0.02)
    again = stages.split(stages.layers_of(made, chip), chip, 4, recompute, made.steps)
    assert max(again.cycles) <= 1.02 * max(really)


@pytest.mark.parametrize("outline", [ipu.outlined_function, tf.function, lambda function: function])
def test_gradients_of_results_that_nothing_takes_cost_nothing(studied, outline):
    """They are zeros, which the gradient of a called function takes: a number that is spread, and added to nothing."""

    def planned(results):
        def layer(x, weights):
            first = tf.nn.relu(x @ weights)
            return (tf.tanh(first), first)[:results]

        def training(x):
            for number in range(3):
                x = outline(layer)(x, v1.get_variable(f"w{number}", [64, 64], use_resource=True))[0]
            return v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(x**2))

        def run():
            with tf.Graph().as_default(), v1.Session() as session:
                fed = v1.placeholder(tf.float32, [32, 64])
                with ipu.scopes.ipu_scope("/device:IPU:0"):
                    program = ipu.ipu_compiler.compile(training, [fed])
                session.run(v1.global_variables_initializer())
                session.run(program, {fed: np.zeros([32, 64], np.float32)})

        made = max(studied(run), key=lambda one: one.plan.peak_bytes)
        assert not made.plan.coarse
        return made.plan.peak_bytes, capacity.estimate(made, CHIPS["gc200"]).cycles

    (most, cycles), (least, alike) = planned(2), planned(1)
    assert cycles == alike and 0 <= most - least <= 3 * 4  # one zero for each call


def pasted(lines):
    """What a user pastes of the lines: the script's own."""
    return lines[next(number for number, line in enumerate(lines) if "begins =" in line) :]
