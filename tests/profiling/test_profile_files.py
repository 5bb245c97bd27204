"""Which profiles are written, where, under which names, and what comes of it where one cannot be."""

import sqlite3

import numpy as np
import pytest
import tensorflow as tf
from profiled_programs import IPU, X, dense, fact, run
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes, utils
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim.cycle_model import timeline_of
from tf_ipu_shim.driver import profiles
from tf_ipu_shim.driver import profiles as profiles_module
from tf_ipu_shim.errors import AccountingFaultWarning
from tf_ipu_shim.memory_reports import memory_report
from tf_ipu_shim.profiling import reader
from tf_ipu_shim.runtime import log

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture
def profiled(environment, tmp_path):
    """Configures so that profiles are written; gives a function that reads them all, in order."""

    def configure(ipus=1, **options):
        engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "reports"), **options}
        environment(engine=engine, ipus=ipus)
        return lambda: [reader.read_profile(folder) for folder in sorted((tmp_path / "reports").iterdir())]

    return configure


def test_nothing_is_written_where_nothing_is_asked_for(environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment()
    run(dense, X)
    assert not list(tmp_path.glob("tf_report*"))


def test_a_program_that_poplar_would_not_compile_has_no_profile(profiled, tmp_path):
    profiled()
    run(lambda x: x + 1, np.int32(2))
    assert not (tmp_path / "reports").exists()


def test_a_profile_for_two_directories_is_made_once(profiled, tmp_path, monkeypatch):
    """Each has what it asked for."""
    made = []
    monkeypatch.setattr(profiles, "timeline_of", lambda *given, **named: made.append(1) or timeline_of(*given, **named))
    monkeypatch.setenv("TF_IPU_SHIM_PROFILE_DIR", str(tmp_path / "outside"))
    own = profiled(**{"autoReport.outputGraphProfile": "false"})
    run(dense, X)
    (inside,), (outside,) = own(), [reader.read_profile(folder) for folder in (tmp_path / "outside").iterdir()]
    assert made == [1]
    assert inside.programs == outside.programs and inside.facts == outside.facts
    assert not inside.variables and not inside.liveness and outside.variables and outside.liveness


def with_feeds(length):
    """A loop with queues of its own."""
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(np.arange(4, dtype=np.float32)))
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def body(total, x):
            return total + x, outfeed.enqueue(x)

        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(lambda: loops.repeat(length, body, [0.0], infeed))
        dequeued = outfeed.dequeue()
        session.run(infeed.initializer)
        return session.run(built)[0], session.run(dequeued).tolist()


def test_a_program_that_was_compiled_before_has_no_profile_again(profiled):
    """Graphcore compiles programs once that differ in the names of their feeds only."""
    profiles = profiled()
    for _ in range(2):
        assert with_feeds(4) == (6.0, [0.0, 1.0, 2.0, 3.0])
    assert len(profiles()) == 1
    assert with_feeds(3) == (3.0, [0.0, 1.0, 2.0])
    assert len(profiles()) == 2
    profiles = profiled()  # a device that has compiled nothing
    with_feeds(4)
    assert len(profiles()) == 3


def test_a_cleared_cache_gives_a_profile_again(profiled):
    profiles = profiled()
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [2])
        with scopes.ipu_scope(IPU):
            doubled = ipu_compiler.compile(lambda x: x + x, [fed])
        with tf.device("cpu"):
            clear = gen_ipu_ops.ipu_clear_all_xla_compilation_caches()
        for count in (1, 2):
            for _ in range(2):
                assert session.run(doubled, {fed: [1.0, 2.0]})[0].tolist() == [2.0, 4.0]
            assert len(profiles()) == count
            session.run(clear)


def test_a_program_that_does_not_fit_has_a_profile(environment, tmp_path):
    engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "reports")}
    environment({"ipu_model.tiles_per_ipu": 1}, "--use_ipu_model", engine)
    with pytest.raises(tf.errors.InternalError, match="ut of memory"):
        run(lambda x: tf.matmul(x, tf.ones([64, 65536])), X)
    (folder,) = (tmp_path / "reports").iterdir()
    profile = reader.read_profile(folder)
    assert fact(profile, "fits") is False
    assert all(saving["bytes"] > 0 for saving in fact(profile, "savings")) and fact(profile, "savings")


def test_a_wrong_number_of_runs_is_refused(profiled):
    profiled(**{"autoReport.executionProfileProgramRunCount": "many"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a number of runs"):
        run(dense, X)


def test_programs_have_the_names_of_the_scripts_functions(profiled, tmp_path):
    profiled()
    from tf_ipu_shim.ipu import ipu_strategy

    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():

        @tf.function(jit_compile=True)
        def train_step(x):
            return tf.matmul(x, x, transpose_b=True)

        strategy.run(train_step, [X])
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.endswith("__train_step")
    assert [plan.program for plan in memory_report().devices[0].programs] == ["train_step"]


def test_the_memory_report_has_the_names_of_profiles(profiled, tmp_path):
    profiled()

    def network(x):
        return dense(x)

    run(network, X)
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.endswith("__network")
    assert [plan.program for plan in memory_report().devices[0].programs] == ["network"]


def test_events_and_profiles_go_together(profiled):
    profiles = profiled(**{"autoReport.outputExecutionProfile": "false"})
    run(dense, X)
    (profile,) = profiles()
    assert fact(profile, "execution") is False
    assert not utils.extract_all_events([])


def test_a_bug_of_ours_stops_no_program(profiled, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise KeyError("not foreseen")

    monkeypatch.setattr(profiles_module, "timeline_of", broken)
    profiled()
    with pytest.warns(AccountingFaultWarning, match="without its cycles"):
        run(dense, X)
    assert not (tmp_path / "reports").exists()


@pytest.fixture
def warned(monkeypatch):
    """The lines that the driver's log gets as warnings."""
    lines = []
    monkeypatch.setattr(log, "warning", lines.append)
    return lines


def test_a_directory_that_cannot_be_written_stops_no_program(profiled, tmp_path, warned):
    (tmp_path / "reports").write_text("a file, not a directory")
    profiled()
    run(dense, X)
    assert any("cannot be written" in line for line in warned)


def test_a_full_disk_stops_no_program_and_leaves_no_partial_file(profiled, tmp_path, warned, monkeypatch):
    def connect(*arguments, **options):
        connection = sqlite3.Connection(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    profiled()
    run(dense, X)
    assert any("cannot be written: database or disk is full" in line for line in warned)
    assert not list((tmp_path / "reports").iterdir())


def test_names_begin_with_the_scope_around_the_program(profiled):
    profiles = profiled()
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, X.shape)
        with v1.variable_scope("around"), scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(lambda x: tf.square(x, name="squared"), [x])
        session.run(built, {x: X})
    (profile,) = profiles()
    assert profile.compute_sets[0].name.startswith("around/squared/")
