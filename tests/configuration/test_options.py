"""Each option that claims an effect is set here, and the difference looked for.

What is looked at follows from the effect that the table claims: values for results, IPUs for devices, and so on.
"""

import functools

import pytest
import tensorflow as tf
from option_observers import (
    CACHE,
    REPORT,
    REPORTS,
    broken,
    collectives,
    cycles,
    fed,
    machine,
    memory,
    normalised,
    on_the_host,
    output,
    places,
    results,
    rounded,
    solves,
    streamed,
)
from option_runs import (
    COMPILE_ONLY,
    STAGES,
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
from tf_ipu_shim.ipu.config import (
    DeviceConnectionType,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule, PipelineStageOptions, RecomputationMode

from tf_ipu_shim.configuration import all_options, arguments
from tf_ipu_shim.configuration.all_options import ENGINE_OPTIONS, IPU_CONFIG, POPLAR_FLAGS
from tf_ipu_shim.machine.environment.effects import CYCLES, DEVICES, EFFECTS, MACHINE, MEMORY, OUTPUT, RECORDED, RESULTS

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
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


PROFILING = {"_profiling.profiling": True}
RUNS_PROFILING = {**PROFILING, "_profiling.profile_execution": True}
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
        {"config": COMPILE_ONLY},
        {"config": {**COMPILE_ONLY, "device_connection.enable_remote_buffers": True}},
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
    **{
        (ENGINE_OPTIONS, option): ({"call": rounded}, {"engine": {option: "true"}})
        for option in ("prng.enableStochasticRounding", "prng.enable")
    },
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
    (IPU_CONFIG, "optimizations.triangular_solve_expander_block_size"): (
        {"call": solves},
        {"config": {"optimizations.triangular_solve_expander_block_size": 8}},
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
        for option, rule in (
            ("debug.floatPointOpException", "0/0"),
            ("debug.nanOverflowException", "max*2"),
            ("debug.nanOverflowMode", "max*2"),
        )
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
            {"call": pipeline, "width": 256},
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
"""What was looked at without the setting, by what looks and the rest of the exercise: many share that."""
REPEATED = set()
"""By what looks, and what runs: exercises that have been looked at twice."""


def test_every_claim_is_exercised():
    assert set(EXERCISES) == set(EFFECTIVE)
    assert {entry.effect for entry in ENTRIES.values()} <= set(EFFECTS)
    assert all(entry.meaning for entry in ENTRIES.values())


@pytest.mark.parametrize("key", EFFECTIVE, ids=lambda key: f"{key[0]}:{key[1]}".replace("`", ""))
def test_what_an_entry_claims_to_change_differs(key, environment, monkeypatch, capfd):
    without, setting = EXERCISES[key]
    observe = OBSERVERS[ENTRIES[key].effect]
    own = {"capfd": capfd} if observe is output else {}
    if without.get("waits"):
        own["monkeypatch"] = pytest.MonkeyPatch()
    place = observe, repr(without)
    if place not in SEEN:
        SEEN[place] = observe(environment, **without, **own)
        kind = observe, getattr(without.get("call"), "func", without.get("call"))
        if kind not in REPEATED:
            REPEATED.add(kind)
            again = observe(environment, **without, **own)
            assert again == SEEN[place], "what is looked at is the same in each run"
    assert observe(environment, **{**without, **setting}, **own) != SEEN[place]
