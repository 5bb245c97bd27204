"""Profiles of what a session runs on an IPU op by op, against what its graph is known to compute."""

import json
import pathlib

import numpy as np
import pva
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import config, ipu_compiler, scopes
from tf_ipu_shim.poplar.ops import gen_poputil_ops

from tf_ipu_shim.cycle_model import Computation, phases_of
from tf_ipu_shim.cycle_model.planning import OperandLayout
from tf_ipu_shim.cycle_model.sizes import MatmulSizes
from tf_ipu_shim.driver import uncompiled_ops
from tf_ipu_shim.errors import AccountingFaultWarning
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.profiling import reader

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
X = np.ones((16, 64), np.float32)
CONTROL = ["__seed/set/setMasterSeed", "setStochasticRounding"]


@pytest.fixture
def profiles(environment, tmp_path):
    """Configures so that profiles are written; gives a function that reads them all, in order."""
    engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "reports")}
    environment(engine=engine)
    return lambda: [reader.read_profile(folder) for folder in _folders(tmp_path)]


def _folders(directory: pathlib.Path):
    reports = directory / "reports"
    return sorted(reports.iterdir()) if reports.exists() else []


def sets(profile):
    return [row.name for row in profile.compute_sets if row.name not in CONTROL]


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def test_a_step_is_one_program(profiles, session, tmp_path):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape, name="x")
        weights = v1.get_variable("w", [64, 32], initializer=v1.ones_initializer(), use_resource=True)
        y = tf.nn.relu(tf.matmul(x, weights), name="activation")
    session.run(v1.global_variables_initializer())
    np.testing.assert_array_equal(session.run(y, {x: X}), np.full((16, 32), 64))
    (profile,) = profiles()  # to set a variable to a constant needs no engine
    assert sets(profile) == [
        "MatMul/dot/Conv_1/Convolve",
        "MatMul/dot/Conv_1/Reduce",
        "activation/relu/Nonlinearity",
    ]
    both = (OperandLayout.ALLOCATED, OperandLayout.ALLOCATED)
    product = phases_of(Computation("product", "", MatmulSizes(1, 16, 64, 32), layouts=both), CHIPS["gc200"])
    (step,) = (row for row in profile.programs if row.computation == "product" and row.kind == "step")
    assert step.cycles == sum(phase.cycles for phase in product)
    assert [(row.name, row.bytes) for row in profile.variables if row.kind == "weight"] == [("w", 64 * 32 * 4)]
    (folder,) = _folders(tmp_path)
    assert folder.name.endswith("__cluster")


def test_only_hardware_sets_stochastic_rounding(profiles, session, monkeypatch, tmp_path):
    """As `replication_normalise_test` of Graphcore's releases has it, and their tests of an IPU Model."""
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        doubled = x + x
    session.run(doubled, {x: X})
    config.reset_ipu_configuration()
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    session.run(doubled, {x: X})
    on_hardware, on_model = [[row.name for row in profile.compute_sets] for profile in profiles()]
    assert on_hardware[1:] == CONTROL and on_model == on_hardware[:-1]
    assert pva.openReport(_folders(tmp_path)[0] / "profile.pop").compilation.computeSets[-1].vertices == []


def test_a_share_of_replicas_is_one_product(profiles, session, ipus):
    ipus(2)
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        share = gen_poputil_ops.ipu_replication_normalise(x)
        total = tf.add(share, x, name="sum")
    np.testing.assert_array_equal(session.run(share, {x: X}), X / 2)
    np.testing.assert_array_equal(session.run(total, {x: X}), 1.5 * X)
    name = "IpuReplicationNormalise/replication-normalise.1/replication_normalise/Op/Multiply"
    assert [sets(profile) for profile in profiles()] == [[name], [name, "sum/add.1/Op/Add"]]


def test_runs_are_counted_and_other_shapes_are_another_program(profiles, session, tmp_path):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, [None, 64])
        y = tf.square(x)
    for rows in (2, 2, 3, 2):
        session.run(y, {x: X[:rows]})
    assert [len(reader.read_runs(folder)) for folder in _folders(tmp_path)] == [2, 1]  # two by default, as Poplar
    small, large = ([row.bytes for row in profile.variables if row.kind == "argument"] for profile in profiles())
    assert (small, large) == ([2 * 64 * 4], [3 * 64 * 4])


def test_each_set_of_fetches_is_a_program(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        first, second = tf.square(x, name="first"), tf.abs(x, name="second")
    session.run(first, {x: X})
    session.run([first, second], {x: X})
    one, both = profiles()
    assert sets(one) == ["first/multiply.1/Op/Multiply"]
    assert sorted(sets(both)) == ["first/multiply.1/Op/Multiply", "second/abs.1/Op/Absolute"]


def test_a_compiled_program_beside_plain_ops_has_its_profile(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
    with scopes.ipu_scope(IPU):
        (compiled,) = ipu_compiler.compile(lambda x: tf.abs(x, name="inside"), [x])
        y = tf.square(compiled, name="around")
    session.run(y, {x: X})
    found = sorted(sets(profile) for profile in profiles())
    assert found == [["around/multiply.1/Op/Multiply"], ["inside/abs.1/Op/Absolute"]]


def test_scalars_constants_and_round_trip_casts_need_no_engine(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, [])
        y, zeros = x + 1, tf.zeros([8, 8])
        halves = v1.placeholder(tf.float16, [8])
        single = tf.cast(halves, tf.float32)
        back = tf.cast(single, tf.float16)
    session.run(y, {x: 1.0})
    session.run(zeros)
    session.run(back, {halves: np.ones(8)})
    assert not profiles()
    session.run(single, {halves: np.ones(8)})
    assert len(profiles()) == 1


def test_whether_variables_have_values_needs_no_engine(profiles, session):
    with tf.device(IPU):
        weights = v1.get_variable("w", [64, 32], initializer=v1.ones_initializer(), use_resource=True)
        asked = v1.report_uninitialized_variables([weights])
        there = v1.is_variable_initialized(weights)
    assert session.run(asked).tolist() == [b"w"] and not session.run(there)
    session.run(weights.initializer)
    assert session.run(asked).tolist() == [] and session.run(there)
    assert profiles() == []


def test_an_op_that_only_xla_runs_is_part_of_its_step(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, [1, 1, 4, 4])
        pooled = tf.nn.max_pool2d(x, 2, 2, "VALID", data_format="NCHW", name="pool")
        y = tf.abs(pooled, name="abs")
    session.run(y, {x: np.ones([1, 1, 4, 4])})
    (profile,) = profiles()
    assert sets(profile) == ["pool/max-pool/maxPool2x2/MaxPooling", "abs/abs.1/Op/Absolute"]


def test_random_variables_are_made_by_one_call(profiles, session):
    with tf.device(IPU):
        v1.get_variable("w", [64, 32], initializer=v1.random_normal_initializer(2.0, 0.5), use_resource=True)
    session.run(v1.global_variables_initializer())
    (profile,) = profiles()
    assert sets(profile) == ["w/Initializer/random_normal/RandomStandardNormal/fusion/normal"]


def test_a_step_without_ipus_and_one_of_the_host_write_nothing(profiles, session):
    with tf.device("/cpu:0"):
        x = v1.placeholder(tf.float32, X.shape)
        y = tf.square(x)
    session.run(y, {x: X})
    assert not profiles()


def test_nothing_is_written_where_nothing_is_asked_for(environment, tmp_path, monkeypatch, session):
    monkeypatch.chdir(tmp_path)
    environment()
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        y = tf.square(x)
    session.run(y, {x: X})
    assert not list(tmp_path.glob("tf_report*"))
    config.reset_ipu_configuration()


def test_a_new_configuration_profiles_a_session_anew(environment, tmp_path, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        y = tf.square(x)
    for number in range(2):
        environment(engine={"autoReport.all": "true", "autoReport.directory": str(tmp_path / f"{number}")})
        session.run(y, {x: X})
        config.reset_ipu_configuration()
    assert [len(list((tmp_path / str(number)).iterdir())) for number in range(2)] == [1, 1]


def test_a_bug_of_ours_stops_no_step(profiles, session, monkeypatch):
    def broken(*arguments):
        raise KeyError("not foreseen")

    monkeypatch.setattr(uncompiled_ops.planned_program, "profile_uncompiled", broken)
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        y = tf.square(x)
    with pytest.warns(AccountingFaultWarning, match="not foreseen"):
        np.testing.assert_array_equal(session.run(y, {x: X}), X)
    assert not profiles()


def test_what_is_no_program_runs_all_the_same(profiles, session, monkeypatch):
    def refused(*arguments):
        raise tf.errors.InvalidArgumentError(None, None, "XLA has no form of it")

    monkeypatch.setattr(uncompiled_ops.planned_program, "profile_uncompiled", refused)
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        y = tf.square(x)
    np.testing.assert_array_equal(session.run(y, {x: X}), X)
    assert not profiles()


def test_facts_name_the_way_it_runs(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape)
        y = tf.square(x)
    session.run(y, {x: X})
    (profile,) = profiles()
    assert next(json.loads(row.value) for row in profile.facts if row.name == "execution_mode") == "kernels"


@pytest.mark.filterwarnings("error::tf_ipu_shim.errors.AccountingFaultWarning")
def test_of_a_loop_over_lists_an_iteration_is_counted(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, [5, 4, 8])
        y = tf.scan(lambda state, value: tf.sin(state * value), x, initializer=tf.zeros([4, 8]))
    given = np.random.RandomState(0).rand(5, 4, 8).astype(np.float32)
    np.testing.assert_array_equal(session.run(y, {x: given}), np.zeros_like(given))
    (profile,) = profiles()
    computed = [row for row in profile.compute_sets if row.name.endswith(("/Op/Sin", "/Op/Multiply"))]
    assert [row.runs for row in computed] == [1, 1]


def test_an_activation_fused_into_a_norm_has_its_own_name(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, [2, 4, 4, 3])
        scale, offset, mean, variance = (tf.random.uniform([3]) for _ in range(4))
        y, *_ = v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False, name="norm")
        y = tf.nn.relu(y, name="activation")
    session.run(y, {x: np.ones(x.shape)})
    (profile,) = profiles()
    assert [name for name in sets(profile) if "Nonlinearity" in name] == ["activation/relu/Nonlinearity"]


def test_norms_of_halves_have_no_casts(profiles, session):
    with tf.device(IPU):
        x = v1.placeholder(tf.float16, [2, 4, 4, 3])
        scale, offset = (v1.get_variable(name, [3], tf.float16, use_resource=True) for name in ("scale", "offset"))
        y, *_ = v1.nn.fused_batch_norm(x, scale, offset, name="norm")
        gradients = tf.gradients(tf.sin(y), [x, scale])
        cast = tf.cast(x, tf.float32, name="own")
    session.run(v1.global_variables_initializer())
    session.run([y, *gradients, cast], {x: np.ones(x.shape)})
    profile = profiles()[-1]
    assert [name for name in sets(profile) if name.endswith("/Cast")] == ["own/convert.1/Cast"]
