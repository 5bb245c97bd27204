"""Each option that claims an effect is set here, and the difference looked for.

What is looked at follows from the effect that the table claims: values for results, IPUs for devices, and so on.
"""

import functools
import pathlib
import shutil
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from option_runs import (
    COMPILE_ONLY,
    STAGES,
    WIDTH,
    gen_recurrent_products,
    keras_accumulation,
    keras_recurrent,
    keras_recurrent_products,
    norm,
    numbered,
    pipeline,
    processes,
    recurrent,
    recurrent_products,
)
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, nn_ops, scopes, utils
from tf_ipu_shim.ipu.config import (
    DeviceConnectionType,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from tf_ipu_shim.ipu.ops import all_to_all_op, cross_replica_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule, PipelineStageOptions, RecomputationMode
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim import memory_report
from tf_ipu_shim.configuration import all_options, arguments
from tf_ipu_shim.configuration.all_options import ENGINE_OPTIONS, IPU_CONFIG, POPLAR_FLAGS
from tf_ipu_shim.machine.effects import CYCLES, DEVICES, EFFECTS, MACHINE, MEMORY, OUTPUT, RECORDED, RESULTS
from tf_ipu_shim.reports import reader
from tf_ipu_shim.runtime import devices

v1 = tf.compat.v1
ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE, NORM, RNN, KERAS_RNN, GEN_RNN, ACCUMULATION, MULTI_CONV = (
    arguments.CALLS[call].heading
    for call in (
        "pipeline",
        "group_norm",
        "PopnnLSTM",
        "keras PopnnLSTM",
        "gen_popnn_ops",
        "Model.set_gradient_accumulation_options",
        "nn_ops.multi_conv",
    )
)
SECTIONS = all_options.sections()
ENTRIES = {(section, entry.name): entry for section, entries in SECTIONS.items() for entry in entries}
EFFECTIVE = [key for key, entry in ENTRIES.items() if entry.effect != RECORDED]


def plan():
    return memory_report().devices[0].programs[-1]


# What is looked at, for each effect. Each takes the settings of one exercise.


def memory(environment, config=None, flags="", engine=None, ipus=STAGES, tiles=None, call=pipeline, **options):
    """The modelled bytes of a training pipeline, or of another call, by IPU; or that it is out of memory."""
    config = {**COMPILE_ONLY, **(config or {})}
    if tiles:
        flags, config = "--use_ipu_model", {**config, "ipu_model.tiles_per_ipu": tiles}
        del config["device_connection.version"]
        config["device_connection.type"] = DeviceConnectionType.ALWAYS
    environment(config, flags, engine, ipus)
    try:
        call(**options, width=512 if tiles else WIDTH)  # a megabyte of weights, for a tile of 624 KiB
    except tf.errors.InternalError as error:
        assert "ut of memory" in str(error)
        return "out of memory"
    return [(dict(ipu.categories), dict(ipu.remote)) for ipu in plan().ipus]


def machine(environment, config=None, flags=""):
    """The chip that programs are compiled for."""
    environment(config, flags)
    return devices.get(0, attach=False).chip


def places(environment, config=None, flags="", waits=False, monkeypatch=None, **options):
    """Which IPUs there are, how they are attached and waited for, and between which a pipeline's exchanges are."""
    if waits:
        return waited(environment, flags, monkeypatch)
    environment(config, flags)
    device = devices.get(0, attach=False)
    seen = [device.num_ipus, device.poplar_id, device.attached, device.connection, device.on_model]
    environment({**COMPILE_ONLY, **{key: value for key, value in (config or {}).items() if key == "selection_order"}})
    pipeline(**options)
    return seen, sorted(plan().exchanges)


def waited(environment, flags, monkeypatch):
    """Seconds that a device waits before its second try, with a clock that stands still."""
    environment(flags=f"--use_on_demand {flags}")
    device = devices.get(0, attach=False)
    seconds = []
    monkeypatch.setattr("tf_ipu_shim.machine.attach.attach_first", lambda *_: None)
    monkeypatch.setattr("tf_ipu_shim.machine.attach.time.monotonic", lambda: 0.0)

    def wait(time):
        seconds.append(time)
        device._closed.set()
        return True

    monkeypatch.setattr(device._closed, "wait", wait)
    with pytest.raises(tf.errors.CancelledError):
        device.attach()
    monkeypatch.undo()
    return seconds


def results(environment, config=None, flags="", engine=None, call=pipeline, **options):
    """What a call gives."""
    environment(config, flags, engine, ipus=2)
    return call(**({"stages": 2, "count": 4} if call is pipeline else {}), **options)


def output(environment, config=None, flags="", sdk="3.4", engine=None, capfd=None):
    """Trace events, what goes to stderr, and files of programs, profiles and tensors, of configuring and compiling."""
    environment(config, flags, engine, sdk=sdk)
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda: tf.matmul(tf.ones([4, 4]), tf.random.uniform([4, 4])))
        for _ in range(4):
            session.run(result)
        events = session.run(gen_ipu_ops.ipu_event_trace())
    kept = [len(list(CACHE.glob(files))) for files in ("*.poplar_exec", "*.tensor_map.json", "*.ipu_bin")]
    shutil.rmtree(CACHE, ignore_errors=True)
    texts = bool(capfd.readouterr().err)
    reports = [extract(events) for extract in (utils.extract_compile_reports, utils.extract_execute_reports)]
    told = [[text.startswith("{") for _, text in several] for several in reports]  # else they are paths
    return utils.extract_all_types_from_event_trace(events), texts, told, kept, profiles()


_COUNTED = ("product", "feed", "collective", "host")


def cycles(environment, config=None, call=None, **options):
    """Cycles of products, collectives, copies and feeds; what the largest product needs beside the tensors."""
    run = call or products
    ipus = STAGES if run in (pipeline, collectives) else 1
    environment({**COMPILE_ONLY, **(config or {})}, engine=REPORT, ipus=ipus)
    run(**options)
    (file,) = REPORTS.glob("*/*/profile.pop")
    steps = [row.cycles for row in reader.read(file).programs if row.computation in _COUNTED]
    shutil.rmtree(REPORTS, ignore_errors=True)
    return steps, [ipu.library for ipu in plan().ipus]


def on_the_host():
    """Compiles two additions on the host, of what an IPU makes and takes."""

    def body(x):
        with scopes.outside_compilation_scope():
            first, second = x + 1.0, x * 2.0 + 2.0
        return first * second

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [8, 8])
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(lambda x: body(x * 3.0), [x])
        session.run(result, {x: np.ones((8, 8))})


def collectives():
    """Compiles two sums over four replicas, and two gathers, of which none needs another."""

    def body(x):
        sums = [cross_replica_ops.cross_replica_sum(x * float(number)) for number in (2, 3)]
        return sums, [all_to_all_op.all_gather(x * float(number), 4) for number in (4, 5)]

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [8, 8])
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(body, [x])
        session.run(result, {x: np.ones([8, 8], "f")})


def products(options=None):
    """Runs a matrix product and a convolution of halves."""

    def both(x, image):
        convolved = nn_ops.multi_conv(
            lambda: tf.nn.conv2d(image, tf.ones([3, 3, 32, 64], tf.float16), 1, "SAME"), options
        )
        return tf.matmul(x, tf.ones([256, 128], tf.float16)), convolved()

    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(tf.float16, shape) for shape in ([128, 256], [1, 16, 16, 32])]
        with scopes.ipu_scope("/device:IPU:0"):
            built = ipu_compiler.compile(both, fed)
        session.run(built, {one: np.ones(one.shape, np.float16) for one in fed})


def profiles():
    """The directory, whether liveness is there and the number of runs of each profile; then they are removed."""
    found = []
    for file in sorted(REPORTS.glob("*/*/profile.pop")):
        runs = reader.runs(file)
        found.append((file.parts[-3], bool(reader.read(file).liveness), runs and len(runs)))
    shutil.rmtree(REPORTS, ignore_errors=True)
    return found


def fed(synthetic=False):
    """A loop's outfeed of its infeed."""
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(5, 100).map(lambda x: tf.cast(x, tf.float32)))
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(
                lambda: loops.repeat(3, lambda x: outfeed.enqueue(tf.fill([2], x)), infeed_queue=infeed)
            )
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        return session.run(taken).tolist()


def streamed():
    """Runs a loop whose infeed has elements of 16 KiB."""
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones([64, 64], "f")).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(lambda: loops.repeat(2, lambda x: outfeed.enqueue(x + x), infeed_queue=infeed))
        outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)


def normalised():
    """The mean that each replica normalises its batch by: the batches are 0, 1, 2, ... throughout."""
    with tf.Graph().as_default(), v1.Session() as session:
        batches = tf.data.Dataset.range(100).map(lambda number: tf.fill([4, 2, 2, 3], tf.cast(number, tf.float32)))
        infeed = ipu_infeed_queue.IPUInfeedQueue(batches)
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def body(x):
            return outfeed.enqueue(v1.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3]), is_training=True)[1])

        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(lambda: loops.repeat(2, body, infeed_queue=infeed))
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        return session.run(taken).tolist()


def broken(rule):
    """What a program gives that breaks a rule of arithmetic in float16; the exception where it stops."""
    left, right = {"0/0": (0.0, 0.0), "1/0": (1.0, 0.0), "max*2": (60000.0, 2.0)}[rule]
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(tf.float16, []) for _ in range(2)]
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(tf.multiply if "*" in rule else tf.divide, fed)
        try:
            return str(session.run(result, dict(zip(fed, (left, right)))))
        except tf.errors.InternalError as error:
            assert "Tiles in excepted state" in error.message
            return "stopped"


def rounded():
    """What a program makes of numbers that are no float16, after a seed."""
    utils.reset_ipu_seed(1)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [64])
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda x: tf.cast(x, tf.float16), [fed])
        return session.run(result, {fed: np.linspace(0.1, 0.7, 64)}).tolist()


_WRITTEN = tempfile.TemporaryDirectory(prefix="tf_ipu_shim_options_", ignore_cleanup_errors=True)
CACHE, REPORTS = pathlib.Path(_WRITTEN.name) / "cache", pathlib.Path(_WRITTEN.name) / "reports"
PROFILING = {"_profiling.profiling": True}
RUNS_PROFILING = {**PROFILING, "_profiling.profile_execution": True}
REPORT = {"autoReport.all": "true", "autoReport.directory": str(REPORTS / "a")}
OBSERVERS = {
    MEMORY: memory,
    MACHINE: machine,
    CYCLES: cycles,
    DEVICES: places,
    RESULTS: results,
    OUTPUT: output,
}
STAGE_OPTIONS = PipelineStageOptions(matmul_options={"availableMemoryProportion": "0"})
PLAIN = PipelineStageOptions()
OFFLOAD = {"offload_weight_update_variables": True}
MODEL = "--use_ipu_model"
IO_TILES = {"io_tiles.num_io_tiles": 32, "io_tiles.place_ops_on_io_tiles": True}
INFEED = "--synthetic_data_categories=infeed"
# For each entry the settings without it, and what setting it adds.
EXERCISES = {
    (IPU_CONFIG, "allow_recompute"): ({}, {"config": {"allow_recompute": True}}),
    (IPU_CONFIG, "scheduling.algorithm"): ({}, {"config": {"scheduling.algorithm": SchedulingAlgorithm.POST_ORDER}}),
    (IPU_CONFIG, "selection_order"): ({}, {"config": {"selection_order": SelectionOrder.HOOF}}),
    (IPU_CONFIG, "compilation_poplar_options"): (
        {"tiles": 1},
        {"config": {"compilation_poplar_options": {"debug.allowOutOfMemory": "true"}}},
    ),
    (IPU_CONFIG, "auto_select_ipus"): ({}, {"config": {"auto_select_ipus": 8}}),
    (IPU_CONFIG, "select_ipus"): ({}, {"config": {"select_ipus": 25}}),
    (IPU_CONFIG, "device_connection.type"): (
        {},
        {"config": {"device_connection.type": DeviceConnectionType.ON_DEMAND}},
    ),
    (IPU_CONFIG, "device_connection.version"): (
        {"config": COMPILE_ONLY},
        {"config": {**COMPILE_ONLY, "device_connection.version": "ipu1"}},
    ),
    (IPU_CONFIG, "device_connection.enable_remote_buffers"): (
        {},
        {"config": {"device_connection.enable_remote_buffers": True}},
    ),
    (IPU_CONFIG, "experimental.multi_replica_distribution.process_count"): (
        {"call": numbered},
        {"config": processes(2, 0)},
    ),
    (IPU_CONFIG, "experimental.multi_replica_distribution.process_index"): (
        {"call": numbered, "config": processes(2, 0)},
        {"config": processes(2, 1)},
    ),
    (IPU_CONFIG, "ipu_model.tiles_per_ipu"): ({"flags": MODEL}, {"config": {"ipu_model.tiles_per_ipu": 8}}),
    (IPU_CONFIG, "ipu_model.version"): ({"flags": MODEL}, {"config": {"ipu_model.version": "ipu1"}}),
    (IPU_CONFIG, "norms.experimental.distributed_batch_norm_replica_group_size"): (
        {"call": normalised},
        {"config": {"norms.experimental.distributed_batch_norm_replica_group_size": 2}},
    ),
    (IPU_CONFIG, "optimizations.minimum_remote_tensor_size"): (
        OFFLOAD,
        {"config": {"optimizations.minimum_remote_tensor_size": 1 << 20}},
    ),
    **{
        (IPU_CONFIG, f"floating_point_behaviour.{option}"): (
            {"call": functools.partial(broken, rule)},
            {"config": {f"floating_point_behaviour.{option}": True}},
        )
        for option, rule in (("inv", "0/0"), ("div0", "1/0"), ("oflo", "max*2"), ("nanoo", "max*2"), ("set_all", "1/0"))
    },
    (IPU_CONFIG, "floating_point_behaviour.esr"): (
        {"call": rounded},
        {"config": {"floating_point_behaviour.esr": StochasticRoundingBehaviour.ON}},
    ),
    (IPU_CONFIG, "experimental.enable_prng_stability"): (
        {"call": rounded, "config": {"floating_point_behaviour.esr": StochasticRoundingBehaviour.ON}},
        {
            "config": {
                "floating_point_behaviour.esr": StochasticRoundingBehaviour.ON,
                "experimental.enable_prng_stability": True,
            }
        },
    ),
    (ENGINE_OPTIONS, "prng.enableStochasticRounding"): (
        {"call": rounded},
        {"engine": {"prng.enableStochasticRounding": "true"}},
    ),
    **{
        (IPU_CONFIG, f"optimizations.maximum_{kind}_buffer_size"): (
            {"call": collectives},
            {"config": {f"optimizations.maximum_{kind}_buffer_size": 1 << 20}},
        )
        for kind in ("cross_replica_sum", "all_gather")
    },
    (IPU_CONFIG, "optimizations.maximum_send_recv_cluster_size"): (
        {"call": on_the_host},
        {"config": {"optimizations.maximum_send_recv_cluster_size": 1 << 20}},
    ),
    (IPU_CONFIG, "convolutions.poplar_options"): (
        {},
        {"config": {"convolutions.poplar_options": {"partialsType": "half"}}},
    ),
    (IPU_CONFIG, "matmuls.poplar_options"): (
        {},
        {"config": {"matmuls.poplar_options": {"availableMemoryProportion": "0.001"}}},
    ),
    **{
        (IPU_CONFIG, f"io_tiles.{option}"): (
            {"call": streamed, "config": {**IO_TILES, f"io_tiles.{option}": before}},
            {"config": {**IO_TILES, f"io_tiles.{option}": value}},
        )
        for option, before, value in (
            ("num_io_tiles", 32, 64),
            ("place_ops_on_io_tiles", False, True),
            ("available_memory_proportion", 0.9, 0.0),
        )
    },
    (MULTI_CONV, "options"): ({}, {"options": {"availableMemoryProportion": "0.001"}}),
    **{
        (section, name): ({"call": call}, {"call": call, name: value})
        for section, call in ((RNN, recurrent_products), (KERAS_RNN, keras_recurrent_products))
        for name, value in (
            ("partials_dtype", tf.float16),
            ("available_memory_proportion_fwd", 0.001),
            ("available_memory_proportion_bwd", 0.001),
            ("options", {"availableMemoryProportion": "0.001"}),
            ("options_bwd", {"availableMemoryProportion": "0.001"}),
        )
    },
    **{
        (GEN_RNN, name): ({"call": gen_recurrent_products}, {"call": gen_recurrent_products, name: value})
        for name, value in (
            ("partials_dtype", tf.float16),
            ("options", '{"availableMemoryProportion": "0.001"}'),
            ("options_bwd", '{"availableMemoryProportion": "0.001"}'),
        )
    },
    (IPU_CONFIG, "serialization_output_folder"): ({}, {"config": {"serialization_output_folder": str(CACHE)}}),
    (IPU_CONFIG, "_profiling.profiling"): ({"sdk": "2.3"}, {"config": {"_profiling.profiling": True}}),
    (IPU_CONFIG, "_profiling.enable_ipu_events"): ({"sdk": "2.3"}, {"config": {"_profiling.enable_ipu_events": True}}),
    **{
        (IPU_CONFIG, f"_profiling.{option}"): (
            {"sdk": "2.3", "config": before},
            {"config": {**before, f"_profiling.{option}": value}},
        )
        for option, value, before in (
            ("profile_execution", True, PROFILING),
            ("report_every_nth_execution", 2, RUNS_PROFILING),
            ("max_report_size", 100, PROFILING),
            ("report_directory", str(CACHE), PROFILING),
        )
    },
    (POPLAR_FLAGS, "help"): ({}, {"flags": "--help"}),
    (POPLAR_FLAGS, "dump_schedule_as_dot"): ({}, {"flags": "--dump_schedule_as_dot"}),
    (POPLAR_FLAGS, "tensor_map_file_path"): ({}, {"flags": f"--tensor_map_file_path={CACHE}"}),
    (POPLAR_FLAGS, "executable_cache_path"): ({}, {"flags": f"--executable_cache_path={CACHE}"}),
    (POPLAR_FLAGS, "show_progress_bar"): (
        {"flags": "--show_progress_bar=false"},
        {"flags": "--show_progress_bar=true"},
    ),
    (POPLAR_FLAGS, "use_synthetic_data"): ({"call": fed}, {"flags": "--use_synthetic_data"}),
    (POPLAR_FLAGS, "synthetic_data_categories"): ({"call": fed}, {"flags": INFEED}),
    (POPLAR_FLAGS, "synthetic_data_initializer"): (
        {"call": fed, "flags": INFEED},
        {"flags": f"{INFEED} --synthetic_data_initializer=4"},
    ),
    (POPLAR_FLAGS, "null_data_feed"): ({"call": fed}, {"flags": "--null_data_feed"}),
    (POPLAR_FLAGS, "use_ipu_model"): ({}, {"flags": MODEL}),
    (POPLAR_FLAGS, "use_on_demand"): ({}, {"flags": "--use_on_demand"}),
    (POPLAR_FLAGS, "on_demand_device_poll_time"): ({"waits": True}, {"flags": "--on_demand_device_poll_time=5000"}),
    (POPLAR_FLAGS, "on_demand_device_timeout"): ({"waits": True}, {"flags": "--on_demand_device_timeout=300"}),
    (POPLAR_FLAGS, "ipu_model_tiles"): ({"flags": MODEL}, {"flags": f"{MODEL} --ipu_model_tiles=8"}),
    (ENGINE_OPTIONS, "debug.allowOutOfMemory"): ({"tiles": 1}, {"engine": {"debug.allowOutOfMemory": "true"}}),
    **{
        (ENGINE_OPTIONS, option): ({"call": functools.partial(broken, rule)}, {"engine": {option: "true"}})
        for option, rule in (("debug.floatPointOpException", "0/0"), ("debug.nanOverflowMode", "max*2"))
    },
    (ENGINE_OPTIONS, "autoReport.all"): ({}, {"engine": REPORT}),
    **{
        (ENGINE_OPTIONS, f"autoReport.{option}"): (
            {"engine": REPORT},
            {"engine": {**REPORT, f"autoReport.{option}": value}},
        )
        for option, value in (
            ("directory", str(REPORTS / "b")),
            ("executionProfileProgramRunCount", "3"),
            ("outputExecutionProfile", "false"),
            ("outputGraphProfile", "false"),
        )
    },
    (PIPELINE, "gradient_accumulation_count"): ({}, {"gradient_accumulation_count": 8}),
    (PIPELINE, "gradient_accumulation_dtype"): ({}, {"gradient_accumulation_dtype": tf.float16}),
    (PIPELINE, "repeat_count"): ({}, {"repeat_count": 2}),
    (PIPELINE, "batch_serialization_iterations"): (
        {"device_mapping": [0, 0], "pipeline_schedule": PipelineSchedule.Sequential},
        {"batch_serialization_iterations": 2},
    ),
    (PIPELINE, "device_mapping"): ({}, {"device_mapping": [3, 1, 2, 0]}),
    (PIPELINE, "pipeline_schedule"): ({}, {"pipeline_schedule": PipelineSchedule.Interleaved}),
    (PIPELINE, "recomputation_mode"): (
        {"config": {"allow_recompute": True}, "layers": 8},
        {"recomputation_mode": RecomputationMode.RecomputeAndBackpropagateInterleaved},
    ),
    (PIPELINE, "offload_weight_update_variables"): ({}, OFFLOAD),
    (PIPELINE, "replicated_optimizer_state_sharding"): (
        {"ipus": 2 * STAGES},
        {"replicated_optimizer_state_sharding": True},
    ),
    **{
        (PIPELINE, f"{way}_propagation_stages_poplar_options"): (
            {"call": pipeline},
            {f"{way}_propagation_stages_poplar_options": [PLAIN, STAGE_OPTIONS, *[PLAIN] * (STAGES - 2)]},
        )
        for way in ("forward", "backward")
    },
    (PIPELINE, "offload_activations"): ({}, {"offload_activations": True}),
    (PIPELINE, "offload_gradient_accumulation_buffers"): ({}, {"offload_gradient_accumulation_buffers": True}),
    (PIPELINE, "replicated_weight_sharding"): ({"ipus": 2 * STAGES}, {"replicated_weight_sharding": True}),
    (PIPELINE, "offload_weights"): ({}, {"offload_weights": True}),
    (PIPELINE, "outfeed_loss"): ({}, {"outfeed_loss": True}),
    (PIPELINE, "accumulate_outfeed"): ({}, {"accumulate_outfeed": True}),
    (PIPELINE, "accumulate_outfeed_dtype"): (
        {"accumulate_outfeed": True},
        {"accumulate_outfeed_dtype": tf.float16},
    ),
    (PIPELINE, "outfeed_mask"): ({}, {"outfeed_mask": [True, False]}),
    (PIPELINE, "reduction_method"): ({}, {"reduction_method": "mean"}),
    **{
        (ACCUMULATION, option): ({"call": keras_accumulation}, {option: True})
        for option in ("offload_weight_update_variables", "replicated_optimizer_state_sharding")
    },
    (NORM, "groups"): ({"call": norm}, {"groups": 4}),
    (NORM, "channels_axis"): ({"call": norm}, {"channels_axis": 1}),
    (NORM, "center"): ({"call": norm}, {"center": False}),
    (NORM, "scale"): ({"call": norm}, {"scale": False}),
    (NORM, "epsilon"): ({"call": norm}, {"epsilon": 0.5}),
    (NORM, "strided_channel_grouping"): ({"call": norm}, {"strided_channel_grouping": False}),
    (RNN, "activation"): ({"call": recurrent}, {"activation": "relu"}),
    (RNN, "recurrent_activation"): ({"call": recurrent}, {"recurrent_activation": "softmax"}),
    (RNN, "return_state"): ({"call": recurrent}, {"return_state": False}),
    (KERAS_RNN, "activation"): ({"call": keras_recurrent}, {"activation": "relu"}),
    (KERAS_RNN, "recurrent_activation"): ({"call": keras_recurrent}, {"recurrent_activation": "softmax"}),
    (KERAS_RNN, "return_sequences"): ({"call": keras_recurrent}, {"return_sequences": True}),
    (KERAS_RNN, "return_state"): ({"call": keras_recurrent}, {"return_state": True}),
    (KERAS_RNN, "time_major"): ({"call": keras_recurrent}, {"time_major": True}),
}


SEEN = {}
"""What was looked at without any setting, by what looks and the rest of the exercise."""


def test_every_claim_is_exercised():
    assert set(EXERCISES) == set(EFFECTIVE)
    assert {entry.effect for entry in ENTRIES.values()} <= set(EFFECTS)
    assert all(entry.what for entry in ENTRIES.values())


@pytest.mark.parametrize("key", EFFECTIVE, ids=lambda key: f"{key[0]}:{key[1]}".replace("`", ""))
def test_what_an_entry_claims_to_change_differs(key, environment, monkeypatch, capfd):
    without, setting = EXERCISES[key]
    observe = OBSERVERS[ENTRIES[key].effect]
    own = {"capfd": capfd} if observe is output else {}
    if without.get("waits"):
        own["monkeypatch"] = pytest.MonkeyPatch()
    seen = SEEN if observe in (memory, machine, results) else {}  # the others see files of each test's own
    place = observe, repr(without)
    if place not in seen:
        seen[place] = observe(environment, **without, **own)
    before = observe(environment, **without, **own)
    assert before == seen[place], "what is looked at is the same in each run"
    assert observe(environment, **{**without, **setting}, **own) != before
