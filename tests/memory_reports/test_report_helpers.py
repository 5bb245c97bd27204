"""`ReportHelper`, `ReportJSON` and the assertions of `TestCaseExtensions`, each with something that holds and fails."""

import unittest

import numpy as np
import pva
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import (
    config,
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    loops,
    scopes,
    test_utils,
)
from tf_ipu_shim.ipu.ops import pipelining_ops

from tf_ipu_shim.messages import trace_pb2

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
X = np.ones([4, 8], np.float32)


class Case(test_utils.TestCaseExtensions, unittest.TestCase):
    pass


CASE = Case()


def test_every_test_case_of_tensorflows_has_the_assertions(forked):
    """The class itself is not named: tests import the package, and no more."""
    mine = {name for name in vars(test_utils.TestCaseExtensions) if name.startswith("assert_")}
    script = "import tensorflow as tf\nfrom tensorflow.python.ipu import test_utils\nprint(*dir(tf.test.TestCase))"
    names = set(forked.succeeds(forked.script(script)).split())
    assert mine and mine <= names


@pytest.fixture
def helper(own_environment):
    made = config.IPUConfig()
    made.auto_select_ipus = 1
    helper = test_utils.ReportHelper()
    helper.set_autoreport_options(made, output_execution_profile=True)
    test_utils.enable_ipu_events(made)
    made.configure_ipu_system()
    return helper


def run(times, events=None, activation=tf.nn.relu):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, X.shape, name="x")
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda x: activation(tf.matmul(x, x, transpose_b=True)), [x])
        report = test_utils.ReportJSON(CASE, session)
        report.reset()
        for _ in range(times):
            session.run(result, {x: X})
        if events is not None:
            events(report)


def test_a_helper_finds_what_its_programs_wrote(helper):
    CASE.assert_num_reports(helper, 0)
    with pytest.raises(AssertionError, match="there are 0"):
        helper.find_report()
    run(3)
    CASE.assert_num_reports(helper, 1)
    report = pva.openReport(helper.find_report())
    CASE.assert_number_of_executions(report, 3)
    CASE.assert_execution_report_cycles(report, report.facts["cycles"] * 3, expected_executions=3)
    with pytest.raises(AssertionError):
        CASE.assert_execution_report_cycles(report, report.facts["cycles"] * 4, expected_executions=3)
    run(1)  # the same program
    assert len(helper.find_reports()) == 1
    run(1, activation=tf.tanh)
    assert len(helper.find_reports()) == 2
    helper.clear_reports()
    CASE.assert_num_reports(helper, 0)


def test_assertions_on_compute_sets(helper):
    run(1)
    report = pva.openReport(helper.find_report())
    on_hardware = "setStochasticRounding"
    CASE.assert_all_compute_sets_and_list(report, ["MatMul/dot*/Conv_1", "Relu/relu/Nonlinearity", on_hardware])
    CASE.assert_compute_sets_contain_list(report, ["Relu/"])
    CASE.assert_compute_sets_matches(report, "*/Nonlinearity", 1)
    CASE.assert_compute_sets_not_in_blacklist(report, ["Softmax"])
    CASE.assert_vertices_contain_list(report, ["poplin::ConvPartial*<float,float"])
    for wrong in (
        lambda: CASE.assert_all_compute_sets_and_list(report, ["MatMul/dot*/Conv_1", on_hardware]),
        lambda: CASE.assert_all_compute_sets_and_list(report, ["MatMul", "Relu", "Softmax", on_hardware]),
        lambda: CASE.assert_compute_sets_contain_list(report, ["softmax"]),
        lambda: CASE.assert_compute_sets_matches(report, "*/Nonlinearity", 2),
        lambda: CASE.assert_compute_sets_not_in_blacklist(report, ["MatMul"]),
        lambda: CASE.assert_vertices_contain_list(report, ["popnn::"]),
    ):
        with pytest.raises(AssertionError):
            wrong()


def test_assertions_on_memory(helper):
    run(1)
    report = pva.openReport(helper.find_report())
    # The argument; the product, over which the ReLU is written; while it is made, on the tile that has both operands,
    # four rows of eight numbers, as many coefficients for each of 16 units, and their sums.
    temporaries = 4 * (4 * 8 + 8 * 16 + 4 * 16)
    total = X.nbytes + 4 * 4 * 4 + temporaries
    CASE.assert_total_tile_memory(report, total)
    CASE.assert_max_tile_memory(report, 128 + temporaries)
    CASE.assert_each_tile_memory_is_less_than(report, 128 + temporaries)
    CASE.assert_always_live_memory(report, 0)
    for wrong in (
        lambda: CASE.assert_total_tile_memory(report, 2 * total),
        lambda: CASE.assert_max_tile_memory(report, 100),
        lambda: CASE.assert_each_tile_memory_is_less_than(report, 100),
        lambda: CASE.assert_always_live_memory(report, 4),
    ):
        with pytest.raises(AssertionError):
            wrong()


def test_events(helper):
    def events(report):
        counts = report.parse_log(assert_len=5)
        assert counts[5] == 2  # EXECUTE
        report.assert_host_to_device_event_names([])
        report.assert_num_device_to_host_transfer_events(0)
        with pytest.raises(AssertionError):
            report.assert_no_event()
        report.assert_tensor_input_names("x")
        report.assert_tensor_inst_name_mappings({"arg0.": "XLA_Args/*"})
        for wrong in (
            lambda: report.assert_tensor_input_names("y"),
            lambda: report.assert_tensor_input_names("x", "*"),
            lambda: report.assert_tensor_inst_name_mappings({"arg0.": "x"}),
            lambda: report.assert_tensor_inst_name_mappings({"arg1.": "*"}),
        ):
            with pytest.raises(AssertionError):
                wrong()
        found = report.get_tensor_map()
        assert len(found.computation_names()) == 2 and found.tile_ids() == {1}  # the program, and its product
        assert found.tile_ids(found.computation_names()) == found.tile_ids(found.computation_names()[0])
        assert [tensor.num_elements for tensor in found.all_tensors()] == [X.size, 16, 16]
        assert report.get_ml_type_counts() == [1, 0, 0, 0]
        with pytest.raises(AssertionError, match="No program with a pipeline"):
            report.assert_pipeline_stages_on_expected_ipu([0], 1472)
        report.reset()
        assert report.get_tensor_map() is None and report.get_ml_type_counts() == [0, 0, 0, 0]
        report.parse_log(assert_len=0)

    run(2, events)


def test_events_are_read_on_the_host_in_the_scope_of_an_ipu(helper):
    with tf.Graph().as_default(), v1.Session() as session, tf.device("/device:IPU:0"):
        x = v1.placeholder(tf.float32, X.shape)
        (doubled,) = ipu_compiler.compile(lambda x: 2 * x, [x])
        report = test_utils.ReportJSON(CASE, session)
        report.reset()
        np.testing.assert_array_equal(session.run(doubled, {x: X}), 2 * X)
        assert report.parse_log()[5] == 1  # EXECUTE


@pytest.mark.parametrize("shape", [(32, 512), (1024, 256)], ids=["copies", "compute"])
@pytest.mark.parametrize("pipelined", [False, True], ids=["loop", "pipeline"])
@pytest.mark.parametrize("tiles", [0, 64])
def test_copies_beside_compute(own_environment, tiles, pipelined, shape):
    made = config.IPUConfig()
    made.auto_select_ipus = 1 + pipelined
    if tiles:
        made.io_tiles.num_io_tiles, made.io_tiles.place_ops_on_io_tiles = tiles, True
    helper = test_utils.ReportHelper()
    helper.set_autoreport_options(made, output_execution_profile=True)
    made.configure_ipu_system()
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones(shape, np.float32)).repeat(8))
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def stage(x):
            return tf.matmul(x, x, transpose_b=True)

        def network():
            if pipelined:
                stages = [stage, lambda x: tf.reduce_sum(x)]
                return pipelining_ops.pipeline(stages, 8, infeed_queue=infeed, outfeed_queue=outfeed)
            return loops.repeat(8, lambda x: outfeed.enqueue(tf.reduce_sum(stage(x))), [], infeed)

        with scopes.ipu_scope("/device:IPU:0"):
            built = ipu_compiler.compile(network)
        session.run(infeed.initializer)
        session.run(built)
    report = pva.openReport(helper.find_report())
    if tiles:
        CASE.assert_compute_io_overlap_percentage(report, 0.6)
        with pytest.raises(AssertionError, match="not greater than 1"):
            CASE.assert_compute_io_overlap_percentage(report, 1)
    else:
        with pytest.raises(AssertionError, match=r"0\.0 not greater than 0"):
            CASE.assert_compute_io_overlap_percentage(report, 0)
    config.reset_ipu_configuration()


def test_events_may_be_serialised():
    """Tests of TensorFlow 1.15 pass on what `ipu_event_trace` returns."""
    kinds = trace_pb2.IpuTraceEvent
    events = [kinds(type=kinds.COMPILE_BEGIN), kinds(type=kinds.COMPILE_END), kinds(type=kinds.COMPILE_END)]
    report = test_utils.ReportJSON(CASE, eager_mode=True)
    found = report.parse_events([event.SerializeToString() for event in events], assert_len=3)
    assert (found[kinds.COMPILE_BEGIN], found[kinds.COMPILE_END], found[kinds.EXECUTE]) == (1, 2, 0)
