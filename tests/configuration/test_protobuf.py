"""From a configuration to its protobuf, and the checks across options."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tf_ipu_shim.configuration.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from tf_ipu_shim.configuration.tree import IPUConfig
from tf_ipu_shim.configuration.verification import KeyId
from tf_ipu_shim.messages import config_pb2, schema, threestate_pb2, trace_pb2

pytestmark = pytest.mark.without_tensorflow


def test_devices():
    config = IPUConfig()
    config.auto_select_ipus = 4
    options = config._create_protobuf()
    assert [device.auto_count for device in options.device_config] == [4]
    assert options.device_config[0].WhichOneof("selection") == "auto_count"
    assert config.auto_select_ipus == [4]
    config.auto_select_ipus = (1, 2)
    assert [device.auto_count for device in config._create_protobuf().device_config] == [1, 2]
    config.auto_select_ipus = []
    config.select_ipus = [24, 0]
    assert [device.cfg_index for device in config._create_protobuf().device_config] == [24, 0]


def test_a_message_that_is_there_is_filled():
    config = IPUConfig()
    config.auto_select_ipus = 2
    message = config_pb2.IpuOptions()
    config._to_protobuf(message)
    assert message == config._create_protobuf()
    assert [device.auto_count for device in message.device_config] == [2]


def test_id_0_counts_as_unset_but_selects():
    config = IPUConfig()
    config.select_ipus = 0
    (device,) = config._create_protobuf().device_config
    assert device.WhichOneof("selection") == "cfg_index"
    assert device.cfg_index == 0
    assert config.select_ipus == [0]


def test_nothing_selected():
    options = IPUConfig()._create_protobuf()
    assert not options.device_config
    assert options.creator_id == config_pb2.IPU_CONFIG


def test_options_reach_their_fields():
    config = IPUConfig()
    config.allow_recompute = True
    config.selection_order = SelectionOrder.HOOF
    config.device_connection.type = DeviceConnectionType.ON_DEMAND
    config.convolutions.poplar_options = {"partialsType": "half", "availableMemoryProportion": "0.2"}
    config.optimizations.enable_graph_outlining = False
    config.optimizations.merge_remote_buffers = MergeRemoteBuffersBehaviour.MERGE
    config.optimizations.math.fast = True
    config.scheduling.algorithm = SchedulingAlgorithm.SHORTEST_PATH
    config.floating_point_behaviour.oflo = True
    config.floating_point_behaviour.esr = StochasticRoundingBehaviour.REPLICA_IDENTICAL_ONLY
    config.ipu_model.tiles_per_ipu = 8
    options = config._create_protobuf()
    assert options.speed_size_config.allow_recompute
    assert options.selection_order == config_pb2.IpuSelectionOrder.Value("HOOF")
    assert options.device_connection_type == config_pb2.IpuDeviceConnectionType.ON_DEMAND
    assert [(flag.option, flag.value) for flag in options.convolution_options] == [
        ("partialsType", "half"),
        ("availableMemoryProportion", "0.2"),
    ]
    assert options.speed_size_config.disable_graph_outlining
    assert options.remote_buffer_merging_mode == threestate_pb2.ThreeState.Value("THREESTATE_ON")
    assert options.algebraic_simplifier_config.enable_fast_math and not options.enable_fast_math
    assert options.speed_size_config.scheduler_selection == config_pb2.IpuSchedulingAlgorithm.Value("SHORTEST_PATH")
    behaviour = options.floating_point_behaviour
    assert (behaviour.inv, behaviour.oflo, behaviour.esr) == (False, True, 2)
    assert options.ipu_model_config.tiles_per_ipu == 8


def test_set_all_forces_the_group():
    config = IPUConfig()
    config.floating_point_behaviour.set_all = True
    behaviour = config._create_protobuf().floating_point_behaviour
    assert behaviour.inv and behaviour.div0 and behaviour.oflo and behaviour.nanoo
    assert behaviour.esr == config_pb2.StochasticRounding_On


def test_dictionaries_hold_text_only():
    config = IPUConfig()
    config.matmuls.poplar_options["availableMemoryProportion"] = 0.2
    with pytest.raises(TypeError, match=r"matmuls\.poplar_options expects strings.*'0\.2'"):
        config._create_protobuf()


def test_numbers_out_of_range_name_the_option():
    config = IPUConfig()
    config.auto_select_ipus = -1
    with pytest.raises(ValueError, match="auto_select_ipus is -1"):
        config._create_protobuf()


def assign(config, **values):
    for path, value in values.items():
        owner = config
        *categories, name = path.split("__")
        for category in categories:
            owner = getattr(owner, category)
        setattr(owner, name, value)
    return config


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"auto_select_ipus": 1, "select_ipus": 1}, Exception, "^Only one of `auto_select_ipus` and `select_ipus` can"),
        ({"auto_select_ipus": 1, "select_ipus": 0}, Exception, "^Only one of `auto_select_ipus` and `select_ipus` can"),
        ({"select_ipus": [1, 2, 1]}, ValueError, "^All MultiIPU indices in `select_ipus` must be"),
        ({"device_connection__type": DeviceConnectionType.NEVER}, ValueError, "device_connection.version"),
        ({"device_connection__type": DeviceConnectionType.PRE_COMPILE}, ValueError, "device_connection.version"),
        ({"io_tiles__num_io_tiles": -32}, ValueError, "^io_tiles.num_io_tiles is -32; .* 0 or more"),
        ({"io_tiles__place_ops_on_io_tiles": True}, ValueError, "num_io_tiles"),
        (
            {"io_tiles__available_memory_proportion": float("nan")},
            ValueError,
            "^io_tiles.available_.* is nan; .* 0 or more",
        ),
        ({"io_tiles__available_memory_proportion": -0.5}, ValueError, "^io_tiles.available_.* is -0.5; .* 0 or more"),
        ({"norms__experimental__distributed_batch_norm_replica_group_size": 0}, ValueError, "at least 1"),
        (
            {"norms__experimental__distributed_batch_norm_replica_group_size": 2, "io_tiles__num_io_tiles": 8},
            ValueError,
            "^norms.experimental.distributed_batch_norm_replica_group_size is not supported with I/O tiles.",
        ),
        (
            {
                "experimental__multi_replica_distribution__process_count": 2,
                "experimental__multi_replica_distribution__process_index": 2,
            },
            ValueError,
            "0 <= process_index < process_count",
        ),
        (
            {
                "experimental__multi_replica_distribution__process_count": 2,
                "experimental__multi_replica_distribution__process_index": -1,
            },
            ValueError,
            "0 <= process_index < process_count",
        ),
    ],
)
def test_contradictions(values, error, message):
    config = assign(IPUConfig(), **values)
    with pytest.raises(error, match=message) as caught:
        config._create_protobuf()
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"select_ipus": [1]}, Exception, "^When using the IPUModel, the devices to"),
        ({"ipu_model__version": ""}, ValueError, "ipu_model.version"),
        ({"experimental__multi_replica_distribution__process_count": 1}, Exception, "IPU model"),
    ],
)
def test_contradictions_on_the_ipu_model(monkeypatch, values, error, message):
    config = assign(IPUConfig(), **values)
    config._create_protobuf()
    config = assign(IPUConfig(), **values)
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    with pytest.raises(error, match=message) as caught:
        config._create_protobuf()
    assert type(caught.value) is error


def test_profiling_options_of_old_sdks(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.2")
    config = IPUConfig()
    config._profiling.profile_execution = True
    with pytest.raises(Exception, match="`profiling` is required when `profile_execution` is set"):
        config._create_protobuf()
    config._profiling.profiling = True
    assert config._create_protobuf().profiling.execution_trace_type == ExecutionProfileType.DEVICE_PROFILE.value
    config._profiling.enable_ipu_events = True
    with pytest.raises(Exception, match="mutually exclusive"):
        config._create_protobuf()


def test_verified_transfers_of_old_sdks(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    config = IPUConfig()
    config._verified_transfers.enabled = True
    config._verified_transfers.key_id_pairs.inputs = KeyId(1, 5)
    config._verified_transfers.key_id_pairs.infeeds["feed"] = KeyId(2, 6)
    transfers = config._create_protobuf().verified_transfers
    assert transfers.enabled and (transfers.inputs.key, transfers.inputs.start_id) == (1, 5)
    (feed,) = transfers.infeeds
    assert (feed.feed_name, feed.key_id.key, feed.key_id.start_id) == ("feed", 2, 6)


def test_bool_for_rounding_in_sdk_2_4_warns_when_applied(monkeypatch, warnings):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    config = IPUConfig()
    config.floating_point_behaviour.esr = True
    assert warnings == []
    assert config._create_protobuf().floating_point_behaviour.esr == 1
    assert len(warnings) == 1 and "deprecated" in warnings[0]
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.3")
    config = IPUConfig()
    config.floating_point_behaviour.esr = True
    assert config._create_protobuf().floating_point_behaviour.esr == 1
    assert len(warnings) == 1


def test_messages_are_messages():
    options = config_pb2.IpuOptions()
    options.device_config.add().cfg_index = 3
    assert config_pb2.IpuOptions.FromString(options.SerializeToString()) == options
    assert options.DESCRIPTOR.full_name == "xla.poplarplugin.IpuOptions"
    with pytest.raises(AttributeError, match="'IpuOption'"):
        _ = config_pb2.IpuOption


def test_trace_event_kinds():
    kinds = trace_pb2.IpuTraceEvent
    assert (kinds.COMPILE_BEGIN, kinds.COMPILE_END, kinds.LOAD_ENGINE, kinds.EXECUTE) == (0, 1, 4, 5)
    assert (kinds.HOST_TO_DEVICE_TRANSFER, kinds.DEVICE_TO_HOST_TRANSFER) == (2, 3)
    event = kinds(type=kinds.EXECUTE, ordinal=1)
    event.execute.module_name = b"cluster_0"
    assert kinds.FromString(event.SerializeToString()).WhichOneof("event") == "execute"


def test_a_schema_is_loaded_once_where_several_threads_ask(monkeypatch, tmp_path):
    """Two programs of one step are lowered at the same time; the descriptor pool refuses a file of the same name."""
    text = 'syntax = "proto3";\npackage tf_ipu_shim;\nmessage Once { int32 x = 1; }\n'
    (tmp_path / "once.proto").write_text(text)
    parse = schema.parse
    started = threading.Barrier(4)

    def parse_slowly(*arguments):
        time.sleep(0.05)
        return parse(*arguments)

    def ask(_):
        started.wait()
        return schema.contents("once_pb2")["Once"]

    monkeypatch.setattr(schema, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(schema, "parse", parse_slowly)
    with ThreadPoolExecutor(4) as pool:
        (made,) = set(pool.map(ask, range(4)))
    assert made(x=3).x == 3
