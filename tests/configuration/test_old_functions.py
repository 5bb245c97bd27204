"""The functions of `ipu.utils` that wrote a configuration before there was `IPUConfig`."""

import types

import pytest

from tf_ipu_shim.configuration import enums, verification
from tf_ipu_shim.legacy.config_functions import behaviour, create, deprecation, libraries, selection
from tf_ipu_shim.messages import config_pb2

pytestmark = pytest.mark.without_tensorflow

# The same functions as in `ipu.utils`, which imports TensorFlow.
MODULES = (enums, verification, behaviour, create, libraries, selection)
utils = types.SimpleNamespace(**{name: value for module in MODULES for name, value in vars(module).items()})


@pytest.fixture
def options(monkeypatch):
    monkeypatch.setattr(deprecation, "_warned", set(vars(utils)))
    return utils.create_ipu_config()


def test_defaults(options):
    assert options.creator_id == config_pb2.IPU_UTILS
    assert options.profiling.max_report_size == 268435456
    assert options.prefetch_data_streams and not options.speed_size_config.merge_infeed_io_copies
    assert (options.max_scheduler_lookahead_depth, options.max_scheduler_search_space_size) == (5, 64)
    assert options.minimum_remote_tensor_size == 128
    assert options.remote_buffer_merging_mode == 0
    assert options.ipu_model_config.compile_ipu_code
    assert not options.floating_point_behaviour.flags_set


def test_selection(options):
    assert utils.auto_select_ipus(options, 4) is options
    assert options.device_config[0].auto_count == 4
    for again in (lambda: utils.auto_select_ipus(options, 1), lambda: utils.select_ipus(options, [1])):
        with pytest.raises(Exception, match="^IPU devices have already been configured"):
            again()
    several = utils.select_ipus(utils.create_ipu_config(), [24, 0])
    assert [device.cfg_index for device in several.device_config] == [24, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda o: utils.auto_select_ipus(o, "4"), Exception, "`num_ipus` must be an integer, list or tuple"),
        (lambda o: utils.select_ipus(o, 4), Exception, "`indices` must be a list or tuple"),
        (lambda o: utils.select_ipus(o, [4, 4]), Exception, "All device indices in `indices` must be unique"),
        (lambda o: utils.set_compilation_options(o, "a"), Exception, "`compilation_options` must be a dictionary"),
        (lambda o: utils.set_convolution_options(o, "a"), Exception, "`convolution_options` must be a dictionary"),
        (lambda o: utils.set_matmul_options(o, ["a"]), Exception, "`matmul_options` must be a dictionary"),
        (lambda o: utils.set_pooling_options(o, "a"), Exception, "`pooling_options` must be a dictionary"),
        (lambda o: utils.set_gcl_options(o, "a"), TypeError, "`gcl_options` must be a dictionary"),
        (lambda o: utils.set_report_options(o, "a"), Exception, "`graph_options` must be a dictionary"),
        (lambda o: utils.set_report_options(o, None, "a"), Exception, "`execution_options` must be a dictionary"),
        (lambda o: utils.set_report_options(o, report_options="a"), Exception, "`report_options` must be a dictionary"),
        (lambda o: utils.set_matmul_options(o, {"a": 1}), TypeError, ".* expects strings as names"),
        (lambda o: utils.set_norm_options(o, False, 0), ValueError, "needs to be at least 1"),
        (lambda o: utils.set_io_tile_options(o, 0, True), ValueError, "Cannot place ops on I/O tiles when"),
        (
            lambda o: utils.set_experimental_multi_replica_distribution_options(o, 2, 2),
            ValueError,
            "0 <= process_index < process_count",
        ),
        (
            lambda o: utils.set_ipu_connection_type(o, utils.DeviceConnectionType.NEVER),
            Exception,
            "`ipu_version` must be specified when `connection_type` is",
        ),
        (
            lambda o: utils.set_verification_options(o, {}),
            Exception,
            "`verification_options` must be of type VerificationOptions",
        ),
    ],
)
def test_refusals(options, call, error, message):
    with pytest.raises(error, match="^" + message if "takes" not in message and "needs" not in message else message):
        call(options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"profiling": True, "enable_ipu_events": True},
            Exception,
            "`enable_ipu_events` are mutually exclusive",
        ),
        ({"profile_execution": True}, Exception, "^`profiling` is required when `profile_execution` is set"),
        ({"profiling": True, "profile_execution": 3}, Exception, "^`profile_execution` must be True, False, or an"),
        ({"scheduler_selection": "Best"}, TypeError, "^Could not convert 'Best' to a valid SchedulingAlgorithm"),
        ({"retain_control_dependencies": True}, Exception, "^`retain_control_dependencies` is deprecated"),
    ],
)
def test_contradictory_starts(options, arguments, error, message):
    with pytest.raises(error, match=message):
        utils.create_ipu_config(**arguments)


def test_starts(options):
    started = utils.create_ipu_config(
        profiling=True,
        profile_execution=utils.ExecutionProfileType.TILE_PROFILE,
        scheduler_selection="Clustering",
        selection_order=utils.SelectionOrder.SNAKE,
        disable_graph_outlining=True,
        report_directory="reports",
    )
    assert started.profiling.execution_trace_type == config_pb2.TILE_PROFILE
    assert started.profiling.enable_compilation_trace and started.profiling.enable_io_trace
    assert started.speed_size_config.scheduler_selection == config_pb2.CLUSTERING
    assert started.selection_order == config_pb2.SNAKE
    assert started.speed_size_config.disable_graph_outlining and started.profiling.report_directory == "reports"


def test_options_reach_their_fields(options):
    utils.set_optimization_options(options, combine_matmuls=True, merge_remote_buffers=True, gather_simplifier=False)
    assert options.enable_matmul_combiner and options.remote_buffer_merging_mode == 1
    assert options.disable_gather_simplifier
    utils.set_norm_options(options, True, 2)
    assert options.use_stable_norm_statistics
    assert options.experimental_distributed_batch_norm_replica_group_size == 2
    utils.set_floating_point_behaviour_options(options, div0=False)
    behaviour = options.floating_point_behaviour
    assert behaviour.flags_set and behaviour.inv and not behaviour.div0 and behaviour.esr == 1
    utils.set_recomputation_options(options)
    assert options.speed_size_config.allow_recompute
    utils.set_io_tile_options(options, 32, True, 0.5)
    assert (options.num_io_tiles, options.place_ops_on_io_tiles) == (32, True)
    assert options.io_tile_available_memory_proportion == 0.5
    utils.set_serialization_options(options, "folder")
    assert options.serialization_folder == "folder"
    utils.set_experimental_multi_replica_distribution_options(options, 2, 1)
    assert (options.multi_replica_process_count, options.multi_replica_process_index) == (2, 1)
    utils.set_matmul_options(options, {"a": "b"}, clear_pass_type=True)
    assert options.matmul_options[0].value == "b" and options.clear_matmul_pass_type
    utils.set_ipu_model_options(options, False, 16, "ipu1")
    assert options.ipu_model_config.tiles_per_ipu == 16 and not options.ipu_model_config.compile_ipu_code
    utils.set_ipu_connection_type(options, utils.DeviceConnectionType.NEVER, 1, True)
    assert (options.device_connection_type, options.ipu_version) == (config_pb2.NEVER, "ipu1")
    assert options.enable_remote_buffers_without_device
    keys = utils.VerificationOptions()
    keys.outputs = utils.KeyId(3, 4)
    utils.set_verification_options(utils.set_transfer_options(options, True), keys)
    assert options.verified_transfers.enabled and options.verified_transfers.outputs.start_id == 4


@pytest.mark.parametrize(
    ("name", "arguments", "phrase"),
    [
        ("set_norm_options", ["x"], "set_norm_options: `use_stable_statistics` must be of type bool, not 'x'"),
        ("set_io_tile_options", [3, "x"], "`place_ops_on_io_tiles` must be of type bool or None, not 'x'"),
        ("set_io_tile_options", [3, True, "x"], "`io_tile_available_memory_proportion` must be of type float"),
        ("set_serialization_options", [3], "`output_folder` must be of type str, not 3"),
        ("set_experimental_multi_replica_distribution_options", ["1", 0], "`process_count` must be of type int"),
    ],
)
def test_arguments_of_the_wrong_type(options, name, arguments, phrase):
    with pytest.raises(TypeError, match=phrase):
        getattr(utils, name)(options, *arguments)
    with pytest.raises(TypeError, match=f"{name}: `opts` must be what .*create_ipu_config returns, not 3"):
        getattr(utils, name)(3, *arguments)


def test_numbers_and_members_that_are_none(options):
    with pytest.raises(ValueError, match="`num_io_tiles` is -3"):
        utils.set_io_tile_options(options, -3)
    with pytest.raises(TypeError, match="`selection_order` must be one of SelectionOrder.AUTO, .*, not 'x'"):
        utils.create_ipu_config(selection_order="x")
    with pytest.raises(TypeError, match="create_ipu_config: `max_report_size` must be of type int, not 'x'"):
        utils.create_ipu_config(max_report_size="x")


def test_gcl_options_in_both_orders(options):
    assert utils.set_gcl_options(utils.create_ipu_config(), {"a": "b"}).gcl_options[0].option == "a"
    old = utils.set_gcl_options(utils.create_ipu_config(), 16, {"a": "b"})
    assert old.num_io_tiles == 16 and old.gcl_options[0].option == "a"
    assert utils.set_gcl_options(utils.create_ipu_config(), num_io_tiles=8).num_io_tiles == 8


def test_deprecation_warns_once_from_sdk_2_1(monkeypatch, warnings):
    monkeypatch.setattr(deprecation, "_warned", set())
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "1.4")
    utils.create_ipu_config()
    assert warnings == []
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.2")
    utils.create_ipu_config()
    utils.create_ipu_config()
    assert len(warnings) == 1 and "create_ipu_config" in warnings[0] and "IPUConfig" in warnings[0]


def test_a_deprecated_argument_warns(options, warnings):
    utils.set_recomputation_options(options, True, False)
    assert len(warnings) == 1 and "allow_stateful_recompute" in warnings[0]


BERT = {  # as public programs start their configuration
    "merge_infeed_io_copies": True,
    "max_cross_replica_sum_buffer_size": 10 * 1024**5,
    "max_inter_ipu_copies_buffer_size": 3,
    "prefetch_data_streams": False,
    "disable_graph_convolution_caching": True,
    "enable_experimental_remote_buffer_embedding": True,
}


@pytest.mark.parametrize("name", BERT)
def test_a_keyword_of_the_start_reaches_its_field(name, options):
    started = utils.create_ipu_config(**{name: BERT[name]})
    default, found = (getattr(_holder(message, name), name) for message in (options, started))
    assert default != BERT[name] and found == BERT[name]


def _holder(options, name):
    is_of_all = name in options.DESCRIPTOR.fields_by_name
    return options if is_of_all else options.speed_size_config


def test_what_poplar_writes_into_its_events():
    started = utils.create_ipu_config(profiling=True, enable_poplar_serialized_graph=True, report_every_nth_execution=3)
    assert started.profiling.enable_poplar_graph and started.profiling.report_every_nth_execution == 3
