"""`tf-ipu fit`: programs that are compiled and not run, planned for other chips."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf
from studies import program
from tf_ipu_shim.ipu import config, cross_replica_ops, ipu_infeed_queue, loops, replication_ops
from tf_ipu_shim.ipu.keras import PipelineStage

import tf_ipu_shim
from tf_ipu_shim import capacity
from tf_ipu_shim.cli import fit
from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.cycle_model.error_bars import BARS
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, HostSizes
from tf_ipu_shim.driver import planned_program as lowering
from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUStrategyV1
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.launches import LAUNCH_SECONDS
from tf_ipu_shim.machine.memory import Block, Value, plan_of
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.runtime import devices

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture
def emitted(monkeypatch):
    """How many ops each program has that is lowered, as they come."""
    numbers, lower = [], lowering.lower

    def counting(*arguments, **options):
        made = lower(*arguments, **options)
        numbers.append(sum(len(function.node_def) for function in made.functions))
        return made

    monkeypatch.setattr(lowering, "lower", counting)
    return numbers


def multiply(size):
    variable = tf.Variable(np.ones([size, 4], np.float32))

    @tf.function(jit_compile=True)
    def step(x):
        variable.assign_add(tf.ones([size, 4]))
        return x @ variable

    return variable, step


def test_nothing_is_computed(studied):
    seen = {}

    def run():
        variable, step = multiply(16)
        with tf.device("/device:IPU:0"):
            seen["result"] = step(tf.ones([8, 16])).numpy()
        seen["variable"] = variable.numpy()

    (found,) = studied(run)
    np.testing.assert_array_equal(seen["result"], np.zeros([8, 4]))
    np.testing.assert_array_equal(seen["variable"], np.ones([16, 4]))
    assert (found.name, found.ipus, found.replicas, found.steps, found.items) == ("step", 1, 1, 1, 8)


def test_the_plan_is_that_of_a_run(studied, ipus):
    def run():
        with tf.device("/device:IPU:0"):
            multiply(64)[1](tf.ones([8, 64]))

    (found,) = studied(run)
    devices.reset()
    ipus(1)
    with IPUStrategyV1().scope():
        run()
    (plan,) = tf_ipu_shim.memory_report().devices[0].programs
    made = capacity.estimate(found, CHIPS["gc200"])
    assert made.ipus[0].peak_bytes == plan.ipus[0].peak_bytes
    assert made.ipus[0].tile_bytes == plan.ipus[0].tile_bytes


def train_pipeline(connection):
    configuration = config.IPUConfig()
    configuration.auto_select_ipus = 2
    configuration.device_connection.type = connection
    configuration.configure_ipu_system()
    rows = tf.ones([2, 64])
    inputs = values = tf.keras.layers.Input((64,), batch_size=1)
    for stage in range(2):
        with PipelineStage(stage):
            values = tf.keras.layers.Dense(64, use_bias=False)(values)
    model = tf.keras.Model(inputs, values)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    model.compile("adam", "mse", steps_per_execution=4)
    model.fit(tf.data.Dataset.from_tensor_slices((rows, rows)).batch(1, True).repeat(), steps_per_epoch=4, verbose=0)


@pytest.mark.parametrize("connection", [config.DeviceConnectionType.ALWAYS, config.DeviceConnectionType.ON_DEMAND])
def test_variables_in_remote_buffers_are_there_too(studied, connection):
    (found,) = studied(lambda: train_pipeline(connection), 2)
    with IPUStrategyV1().scope():
        train_pipeline(connection)
    (plan,) = tf_ipu_shim.memory_report().devices[0].programs
    assert [ipu.remote for ipu in found.plan.ipus] == [ipu.remote for ipu in plan.ipus]
    # Both moments of a stage's weights; a device that is not always attached has no remote buffers.
    moments = {"optimizer_state": 2 * 64 * 64 * 4} if connection is config.DeviceConnectionType.ALWAYS else {}
    assert [dict(ipu.remote) for ipu in found.plan.ipus] == [moments, moments]
    made = capacity.estimate(found, CHIPS["gc200"])
    assert [ipu.tile_bytes for ipu in made.ipus] == [ipu.tile_bytes for ipu in plan.ipus]


def test_a_program_that_does_not_fit_is_no_error(studied, monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=4")

    def run():
        with tf.device("/device:IPU:0"):
            multiply(200_000)[1](tf.ones([1, 200_000]))  # 3.2 MB of weights, on 2.5 MB

    (found,) = studied(run)
    assert not found.plan.fits
    assert capacity.estimate(found, CHIPS["gc200"]).fits
    halves = next(one for one in found.plan.savings if one.action.startswith("float16"))
    assert halves.fits and halves.bytes == pytest.approx(found.plan.peak_bytes / 2, rel=0.01)
    text = capacity.to_text([found], capacity.systems_for([], ["gc200"], 1))
    assert re.search(
        rf"it does not fit\. The actions that save most on IPU 0.*\n +{format_bytes(halves.bytes)}  float16.*fits then",
        text,
    )


def test_what_does_not_fit():
    large = program(600 << 20)  # twice 600 MiB, on 897 MiB
    made = capacity.estimate(large, CHIPS["gc200"])
    assert not made.fits
    assert made.headroom <= (897 - 1200) << 20
    text = capacity.to_text([large], capacity.systems_for([], ["gc200"], 1))
    assert "no: IPU 0" in text
    assert text.startswith(
        "On 1 IPU the programs are too large for every system. Divide the model over more IPUs, or make"
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_steps_and_items_of_an_infeed(studied, replicas):
    def run():
        dataset = tf.data.Dataset.from_tensors(tf.ones([6])).repeat().batch(4, drop_remainder=True)
        infeed = ipu_infeed_queue.IPUInfeedQueue(dataset)

        @tf.function(jit_compile=True)
        def sums():
            return loops.repeat(5, lambda total, x: total + tf.reduce_sum(x), [tf.constant(0.0)], infeed)

        with tf.device("/device:IPU:0"):
            infeed.initializer  # noqa: B018 - it starts the feed
            sums()

    (found,) = studied(run, replicas)
    assert (found.replicas, found.steps, found.items) == (replicas, 5, 5 * 4 * replicas)


def trained(replicas):
    """Trains on so many replicas, each of which knows which one it is, in two XLA programs around a sum."""
    weight = tf.Variable(tf.ones([8, 8]))
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.ones([4, 8])).repeat())

    def step(total, x):
        own = tf.cast(replication_ops.replication_index() + 1, tf.float32)
        gradient = cross_replica_ops.cross_replica_sum(tf.matmul(x, x * own, transpose_a=True))
        with tf.control_dependencies([weight.assign_sub(gradient / replicas)]):
            return total + tf.reduce_sum(x @ weight)

    @tf.function(jit_compile=True)
    def train():
        return loops.repeat(5, step, [tf.constant(0.0)], infeed)

    with tf.device("/device:IPU:0"):
        infeed.initializer  # noqa: B018 - it starts the feed
        return float(train())


def figures(plan):
    """A plan without calls of libraries and code, which only cycles tell, and without the numbers of variables."""
    plain = {"library": None, "code": (), "library_tile_bytes": 0}
    ipus = [dataclasses.asdict(dataclasses.replace(one, **plain)) for one in plan.ipus]
    variables = [(key[0], size) for key, size in plan.variables.items()]
    text = re.sub(r"Variable/\d+", "Variable", repr(ipus))
    return text, variables, plan.exchanges, plan.shard_ipus, plan.coarse


def test_replicas_are_planned_as_they_run_and_emitted_once(studied, ipus, emitted):
    for replicas in (2, 4, 16):
        results = []
        (found,) = studied(lambda replicas=replicas, results=results: results.append(trained(replicas)), replicas)
        assert results == [0.0]
        ipus(replicas)
        with IPUStrategyV1().scope():
            # The gradient of a step is 4 (r + 1) of replica r, averaged, off each of 64 weights that four rows add up.
            averaged = 4 * (replicas + 1) / 2
            steps = [4 * 64 * (1 - step * averaged) for step in range(1, 6)]
            assert trained(replicas) == pytest.approx(sum(steps))
        (planned,) = tf_ipu_shim.memory_report().devices[0].programs
        assert found.replicas == replicas and len(found.plan.ipus) == replicas
        assert figures(found.plan) == figures(planned)
        devices.reset()
    studies, runs = emitted[::2], emitted[1::2]
    assert len(set(studies)) == 1, "what is not run hangs on the number of replicas"
    assert runs[2] - runs[1] > 3 * studies[0], "each replica that runs has its own ops"


def test_a_study_leaves_no_files(studied, monkeypatch, tmp_path):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path}/cache")
    options = config.IPUConfig()
    options.serialization_output_folder = str(tmp_path / "programs")

    def run():
        options.configure_ipu_system()
        with tf.device("/device:IPU:0"):
            multiply(16)[1](tf.ones([8, 16]))

    assert len(studied(run)) == 1
    assert list(tmp_path.iterdir()) == []


def test_cycles_and_error_of_element_wise_work():
    made = capacity.estimate(program(), CHIPS["gc200"])
    assert (made.regime, made.error_factor) == ("small", BARS["small"])
    assert made.cycles_per_step == made.cycles / 2
    assert made.samples_per_second == pytest.approx(8 / (made.cycles / 1.33e9))
    bow = capacity.estimate(program(), CHIPS["bow"])
    assert bow.cycles == made.cycles and bow.samples_per_second == pytest.approx(made.samples_per_second * 1.85 / 1.33)


def test_a_launch_counts_end_to_end():
    small = program(400 << 20)
    made = capacity.estimate(small, CHIPS["gc200"])
    seconds = made.cycles / 1.33e9
    assert made.samples_per_second_end_to_end == pytest.approx(8 / (seconds + LAUNCH_SECONDS))
    assert made.launch_share == pytest.approx(LAUNCH_SECONDS / (seconds + LAUNCH_SECONDS))
    assert (made.regime_end_to_end, made.error_factor_end_to_end) == ("launch", BARS["launch"])
    systems = capacity.systems_for([], ["gc200", "bow"], 1)
    lines = capacity.to_text([small], systems).splitlines()
    (told,) = [line for line in lines if "launches dominate" in line]
    assert told.startswith("  On gc200, bow launches dominate: 9")
    wanted = int(re.search(r"Run ([\d,]+) steps", told)[1].replace(",", ""))
    step = capacity.estimate(small, CHIPS["bow"]).cycles_per_step / 1.85e9  # of the faster one
    assert LAUNCH_SECONDS / (LAUNCH_SECONDS + wanted * step) == pytest.approx(0.1, rel=0.01)
    record, _ = capacity.to_records([small], systems)["programs"][0]["systems"]
    assert record["items_per_second_end_to_end"] == made.samples_per_second_end_to_end
    assert record["end_to_end_factor"] == [1 / BARS["launch"], BARS["launch"]]


def test_a_toy_is_told_that_its_steps_are_too_small():
    systems = capacity.systems_for([], ["gc200", "bow"], 1)
    assert capacity.estimate(program(), CHIPS["gc200"]).launch_share > 0.9
    text = capacity.to_text([program()], systems)
    assert "On gc200, bow launches dominate: 100 % of a run. Run 1,000 steps at a time" in text
    assert "then: a step is too small for an IPU." in text


@pytest.mark.parametrize("chip, gigabits", [("gc2", 33), ("gc200", 44), ("bow", 44), ("c600", 66)])
def test_the_host_link_is_that_of_the_system(chip, gigabits):
    fed = program()
    block = Block("fed")
    x = block.add(Value(10**8, "x", "argument"))
    block.run("copy of x from the host", (), (x,), work=Computation("host", "", HostSizes(10**8), 1))
    made = capacity.estimate(dataclasses.replace(fed, blocks={0: block}), CHIPS[chip])
    assert made.cycles / CHIPS[chip].clock_hz == pytest.approx(8e8 / (gigabits * 1e9), rel=1e-3)
    assert (made.regime, made.host_share) == ("host", 1.0)
    text = capacity.to_text([dataclasses.replace(fed, blocks={0: block})], capacity.systems_for([], [chip], 1))
    assert f"On {chip} input and output dominate: 100 % of the cycles." in text


def test_a_program_that_is_close_names_its_largest_contributions():
    large = program(400 << 20)  # twice 400 MiB, on 897 MiB
    text = capacity.to_text([large], capacity.systems_for([], ["gc200"], 1))
    assert "close: IPU 0" in text and "It is close: on hardware they may not fit." in text
    assert re.search(r"Close on gc200: IPU 0, the fullest tile .*Largest contributions: \w+ [\d.]+ KiB, ", text)
    (record,) = capacity.to_records([large], capacity.systems_for([], ["gc200"], 1))["programs"][0]["systems"]
    assert (record["verdict"], record["fits"]) == ("close", True)
    assert record["by_ipu"][0]["expected_tile_bytes"] > record["by_ipu"][0]["peak_bytes"] / 1472


def test_headroom_is_what_is_left_of_the_fullest_tile():
    # 1472 tiles with 128 bytes each of both x and y.
    made = capacity.estimate(program(1472 * 128), CHIPS["gc200"])
    assert made.headroom == 1472 * (624 * 1024 - made.ipus[0].max_tile_bytes)
    assert made.ipus[0].max_tile_bytes == 2 * 128


def named_program(name, size, runs):
    """A program of so many bytes, whose op runs so often."""
    made = program(size)
    block = Block("IPU 0")
    x, y = (block.add(Value(size, name, "argument")) for name in "xy")
    for _ in range(runs):
        block.run("double", (x,), (y,), work=Computation("elementwise", "double", ElementwiseSizes(size // 4, 1)))
    plan = dataclasses.replace(made.plan, program=name, ipus=(plan_of(0, block, CHIPS["gc200"]),))
    return dataclasses.replace(made, name=name, plan=plan, blocks={0: block})


@pytest.mark.parametrize(("top", "shown"), [(1, "c"), (2, "ac"), (3, "abc"), (9, "abcd")])
def test_top(top, shown):
    """By turns the program with most memory and the one that runs longest."""
    sizes = {"a": (1 << 20, 99), "b": (4 << 20, 1), "c": (5 << 20, 1), "d": (1 << 20, 1)}
    programs = [named_program(name, *size) for name, size in sizes.items()]
    text = capacity.to_text(programs, capacity.systems_for([], ["gc200"], 1), top)
    assert re.findall(r"^(\w): 1 IPU", text, re.M) == list(shown)
    assert ("smaller program" in text) == (len(shown) < 4)


def test_systems():
    names = [system.name for system in capacity.systems_for([], ["gc200", "bow"], 5)]
    assert names == ["pod8", "bow-pod8"]
    assert [system.name for system in capacity.systems_for(["pod4", "bow-pod16"], ["bow"], 1)] == ["bow-pod16"]
    with pytest.raises(ValueError, match=r"There is no chip 'gc3'\. Name some of: gc2, gc200, bow, c600"):
        capacity.systems_for([], ["gc3"], 1)
    with pytest.raises(ValueError, match="There is no simulated system 'pod5'"):
        capacity.systems_for(["pod5"], [], 1)
    assert capacity.smallest(3, lambda chip: chip.name == "bow").name == "bow-2000"
    assert capacity.smallest(257, lambda chip: True) is None


def test_a_system_with_too_few_ipus_says_so():
    wide = dataclasses.replace(program(), ipus=8)
    assert "too few IPUs" in capacity.to_text([wide], capacity.systems_for(["pod4"], [], 8))


def test_batch_sizes():
    assert fit._parse_batch_size("--batch-size=8,16") == ("--batch-size", ["8", "16"])
    for text in ("8,16", "=8", "--batch="):
        with pytest.raises(Exception, match="is not of the form"):
            fit._parse_batch_size(text)


def test_the_command(python, forked):
    script = python.script(
        "import sys, tensorflow as tf\nfrom tensorflow.python import ipu\nc = ipu.config.IPUConfig()\n"
        "c.auto_select_ipus = 1\nc.configure_ipu_system()\n"
        "with ipu.ipu_strategy.IPUStrategyV1().scope() as s:\n"
        "  print(s.run(tf.function(lambda x: tf.sin(x) + 1.0), args=[tf.ones([int(sys.argv[2])])]).numpy().sum())\n"
    )
    options = ("-m", "tf_ipu_shim.cli", "fit")
    process = python(*options, "--system", "pod4,bow-pod4", "--batch=--batch=64", script)
    assert process.returncode == 0, process.stdout + process.stderr
    lines = process.stdout.splitlines()
    assert lines[:2] == ["== --batch 64", "0.0"]
    assert lines[2].startswith("Smallest system on which all programs fit: ")
    assert "1 IPU, 64 items in 1 step a run" in lines[4]
    assert [line.split()[:4] for line in lines[6:8]] == [["pod4", "gc200", "4", "yes"], ["bow-pod4", "bow", "4", "yes"]]
    assert forked(*options, "--chips", "gc3", script).returncode == 2


def test_a_script_that_fails_before_it_has_a_program(forked):
    done = forked("-m", "tf_ipu_shim", "fit", forked.script("from tensorflow.python import ipu\nraise SystemExit(3)\n"))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1] == "The script ended with status 3 before a program was compiled for IPUs."


def test_a_script_that_finds_its_results_wrong_is_told_why(forked):
    script = forked.script(
        "import tensorflow as tf\nfrom tensorflow.python import ipu\nc = ipu.config.IPUConfig()\n"
        "c.auto_select_ipus = 1\nc.configure_ipu_system()\n"
        "with ipu.ipu_strategy.IPUStrategyV1().scope() as s:\n"
        "  assert s.run(tf.function(lambda x: tf.sin(x) + 1.0), args=[tf.ones([8])]).numpy().all(), 'wrong'\n"
    )
    done = forked("-m", "tf_ipu_shim.cli", "fit", "--system", "pod4", script)
    assert done.returncode == 1
    assert "1 IPU, 8 items in 1 step a run" in done.stdout
    last = done.stderr.splitlines()[-2:]
    assert last[0] == "AssertionError: wrong"
    assert last[1].startswith("The script ended with status 1. Later programs are missing here.")
    assert "A script that checks its results ends like this" in last[1]
    first = "tf-ipu fit: nothing is computed. All results that the script gets are zeros."
    assert first in done.stderr.splitlines()
