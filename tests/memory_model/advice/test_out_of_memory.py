"""Programs that do not fit: the exception and its text, and what cures it. The chip is a GC200 with four tiles."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_strategy, scopes
from tf_ipu_shim.ipu.config import IPUConfig

from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.memory_reports import memory_report

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
TILES = 4
TILE = 638_976
HALF = 300_000  # floats of one layer: 1,200,000 bytes; two of them and a little do not fit


@pytest.fixture
def configured(monkeypatch, own_environment):
    """Configures IPUs of four tiles, with these engine options."""
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--use_ipu_model --ipu_model_tiles={TILES}")

    def configure(count=1, **options):
        config = IPUConfig()
        config.auto_select_ipus = count
        config.compilation_poplar_options = options
        config.configure_ipu_system()

    return configure


def two_layers(x, shards=(0, 0)):
    total = tf.reduce_sum(x)
    for index, shard in enumerate(shards):
        with scopes.ipu_shard(shard):
            layer = v1.get_variable(
                f"layer{index}", [HALF], use_resource=True, initializer=v1.constant_initializer(index + 1)
            )
            total = total + tf.reduce_sum(layer * total)
    return total


def one_layer(x):
    return two_layers(x, shards=(0,))


def run(model, x):
    """Compiles and runs a model in a session of its own."""
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, x.shape)
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(model, [fed])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            return session.run(result, {fed: x})


X = np.zeros((500,), np.float32)


def test_class_and_text(configured, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXACT_BYTES", "1")
    configured()
    with pytest.raises(tf.errors.InternalError) as caught:
        run(two_layers, X)
    text = str(caught.value)
    assert "[Poplar][Compile engine] graph_memory_allocation_error: Out of memory on tile " in text
    tile, used = map(int, re.search(r"on tile (\d+): (\d+) bytes used but tiles only have 638976 bytes", text).groups())
    assert 0 <= tile < TILES
    # Both layers, and the product of one with a number, over four tiles.
    assert 3 * HALF * 4 / TILES <= used <= 3 * HALF * 4 / TILES + 3000
    over = int(re.search(r"on IPU 0 \(shard 0\), which has 2,555,904 B: ([\d,]+) B over", text)[1].replace(",", ""))
    assert abs(over - (3 * HALF * 4 - TILES * TILE)) < 5000
    assert re.search(r"1,200,000 B +weight +layer0 \(shard 0", text)
    assert re.search(r"1,200,000 B +weight +layer1 \(shard 0", text)
    line = r"test_out_of_memory\.py:\d+, in two_layers"
    assert re.search(rf"1,200,000 B +temporary +mul\w* \(shard 0, .*{line}\)", text)
    # The second layer and its product are the other IPU's.
    saved, action = re.search(r"([\d,]+) B  2 IPUs to a replica instead of 1 \((.*)", text).groups()
    assert abs(int(saved.replace(",", "")) - HALF * 4) < 3000
    assert re.fullmatch(r"auto_select_ipus, ipu_shard\), shard 1 from mul\w* \(.*\) on: fits then", action)


def test_text_of_older_sdks(configured, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    configured()
    with pytest.raises(tf.errors.InternalError, match=r"\[Error\]\[Compile engine\] Out of memory on tile \d"):
        run(two_layers, X)


def test_sharding_cures_it(configured):
    configured(2)
    with pytest.raises(tf.errors.InternalError, match="Out of memory"):
        run(two_layers, X)
    assert run(lambda x: two_layers(x, shards=(0, 1)), X) == 0
    programs = memory_report().devices[0].programs
    assert [program.fits for program in programs] == [False, True]


def test_the_next_program_runs_as_if_nothing_had_been(configured):
    configured()
    for _ in range(2):
        with pytest.raises(tf.errors.InternalError, match="Out of memory"):
            run(two_layers, X)
        assert run(one_layer, X) == 0


def test_a_failed_program_fails_again_in_the_same_session(configured):
    configured()
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, X.shape)
        with scopes.ipu_scope(IPU):
            large = ipu_compiler.compile(two_layers, [fed])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(2):
                with pytest.raises(tf.errors.InternalError, match="Out of memory"):
                    session.run(large, {fed: X})


def test_it_is_the_argument_shape_that_decides(configured):
    configured()

    def model(x):
        return tf.reduce_sum(tf.matmul(x, tf.transpose(x)))

    @tf.function
    def compiled(x):
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(model, [x])[0]

    with pytest.raises(tf.errors.InternalError, match="Out of memory"):
        compiled(tf.ones([2000, 2]))
    assert compiled(tf.ones([10, 2])) == 200


def test_large_savings_of_a_large_program_are_left_to_tf_ipu_fit(configured, monkeypatch):
    monkeypatch.setattr(memory_plan, "_QUICKLY_PLANNED", 3)
    configured(**{"debug.allowOutOfMemory": "true"})
    assert run(two_layers, X) == 0
    report = memory_report()
    (plan,) = report.devices[0].programs
    assert not plan.fits and not plan.savings
    assert "Ask tf-ipu fit what would save most." in report.to_text()
    configured()
    with pytest.raises(tf.errors.InternalError, match="The actions that save most on IPU 0"):
        run(two_layers, X)


@pytest.mark.parametrize("where", ["configuration", "environment"])
def test_the_engine_option_lets_it_finish_and_report(configured, monkeypatch, where):
    if where == "configuration":
        configured(**{"debug.allowOutOfMemory": "true"})
    else:
        monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.allowOutOfMemory": "true"}')
        configured()
    assert run(two_layers, X) == 0
    report = memory_report()
    (plan,) = report.devices[0].programs
    assert not plan.fits
    text = report.to_text()
    assert text.startswith(f"IPU memory report (SDK 3.4): does NOT fit: {plan.program}.")
    assert "TOO FULL" in text and "\nThe actions that save most on IPU 0" in text
    told = json.loads(report.to_json())["devices"][0]["modelled"]["programs"][0]["savings"]
    assert told and all(f"{format_bytes(one['bytes'])}  {one['action']}"[:60] in text for one in told)
    assert max(map(len, text.splitlines())) <= 100


def test_the_environment_overrides_the_configuration(configured, monkeypatch):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.allowOutOfMemory": "false"}')
    configured(**{"debug.allowOutOfMemory": "true"})
    with pytest.raises(tf.errors.InternalError, match="Out of memory"):
        run(two_layers, X)


def test_a_program_that_does_not_fit_is_in_the_report(configured):
    configured()
    with pytest.raises(tf.errors.InternalError, match="Out of memory on tile"):
        run(two_layers, X)
    plan = memory_report().devices[0].ipus[0].modelled
    assert not plan.fits
    assert plan.categories["weight"] == 2 * HALF * 4


def test_a_keras_model_is_told_what_keras_has(configured):
    configured()
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1200, input_shape=(1200,)) for _ in range(2)])
        model.compile("sgd", "mse")
        with pytest.raises(tf.errors.InternalError, match="Out of memory") as error:
            model.predict(np.zeros([4, 1200], np.float32), batch_size=4)
    text = str(error.value)
    assert "model.set_pipeline_stage_assignment" in text and "ipu_shard" not in text
    with pytest.raises(tf.errors.InternalError, match="auto_select_ipus, ipu_shard"):
        run(two_layers, X)
