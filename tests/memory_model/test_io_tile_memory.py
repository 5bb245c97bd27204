"""The memory of programs whose feeds have tiles of their own: nothing else is on these, and the others are fewer."""

import contextlib
import math

import numpy as np
import pva
import pytest
import tensorflow as tf

from tf_ipu_shim import ipu, memory_report

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
TILES, TILE_BYTES = 8, 638_976
WIDE = (128, 256)  # of the element; what comes back is 128 x 128


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """Plans a loop whose feeds have so many I/O tiles of 8; gives the plan of its IPU and the profile's directory."""
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--use_ipu_model --ipu_model_tiles={TILES}")

    def run(io_tiles, proportion=0.9, profile=False, shape=WIDE):
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 1
        config.io_tiles.num_io_tiles = io_tiles
        config.io_tiles.place_ops_on_io_tiles = io_tiles > 0
        config.io_tiles.available_memory_proportion = proportion
        config.device_connection.type = ipu.utils.DeviceConnectionType.PRE_COMPILE
        config.device_connection.version = "ipu2"
        monkeypatch.setenv("TF_IPU_SHIM_PROFILE_DIR", str(tmp_path / str(io_tiles)) if profile else "")
        config.configure_ipu_system()
        with tf.Graph().as_default():
            dataset = tf.data.Dataset.from_tensors(np.zeros(shape, np.float32)).repeat()
            infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

            def body(x):
                return outfeed.enqueue(tf.matmul(x, x, transpose_b=True))

            with ipu.scopes.ipu_scope("/device:IPU:0"):
                program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(4, body, [], infeed))
            with v1.Session() as session, contextlib.suppress(tf.errors.InternalError):
                session.run(infeed.initializer)
                session.run(program)
        (made,) = memory_report().devices[0].programs
        return made.ipus[0], tmp_path / str(io_tiles)

    return run


def feeds(shape=WIDE):
    return 4 * (math.prod(shape) + shape[0] * shape[0])


def test_feeds_are_on_their_tiles_and_all_else_on_the_others(planned):
    plain, apart = planned(0)[0], planned(2)[0]
    assert sum(apart.tile_bytes[-2:]) == feeds()
    assert apart.peak_bytes == sum(apart.tile_bytes) == plain.peak_bytes + feeds()
    assert apart.categories["argument"] == plain.categories["argument"] + feeds()
    assert apart.not_always_live_bytes == plain.not_always_live_bytes
    assert apart.always_live_bytes == plain.always_live_bytes + feeds()
    least = plain.peak_bytes / (TILES - 2)
    assert least <= max(apart.tile_bytes[:-2]) < 1.1 * least
    assert apart.limit_bytes == plain.limit_bytes == TILES * TILE_BYTES


@pytest.mark.parametrize("options", [{"proportion": 0.0}, {"shape": (1024, 2048)}])
def test_feeds_that_do_not_fit_there_are_where_all_is(planned, options):
    apart, plain = planned(1, **options)[0], planned(0, **options)[0]
    assert (apart.tile_bytes, apart.peak_bytes) == (plain.tile_bytes, plain.peak_bytes)


def test_tiles_that_are_set_apart_are_missed(planned):
    """An element and its product take 4.2 MB of 5.1; with seven tiles set apart one is left for them."""
    shape = (512, 512 * 3)
    assert planned(0, shape=shape)[0].fits
    over, _ = planned(7, proportion=1.0, shape=shape)
    assert not over.fits and max(over.tile_bytes[-7:]) < TILE_BYTES < over.tile_bytes[0]


def test_tiles_of_a_profile(planned):
    found, directory = planned(2, profile=True)
    (path,) = directory.glob("*/profile.pop")
    report = pva.openReport(str(path))
    tiles = report.compilation.tiles
    totals = [tile.memory.total.includingGaps for tile in tiles]
    assert totals[-2:] == list(found.tile_bytes[-2:])
    # As Graphcore's tests add it up: what is always there, and the most of all steps.
    steps = [step.notAlwaysLiveMemory.bytes for step in report.compilation.livenessProgramSteps]
    assert sum(totals) == found.always_live_bytes + max(steps) > found.peak_bytes
    assert [tile.memory.alwaysLiveBytes for tile in tiles][-2:] == list(found.tile_bytes[-2:])
    assert all(tile.memory.notAlwaysLiveBytes >= 0 for tile in tiles)
    fed = [row.size for row in report.compilation.alwaysLiveVariables if row.category == "argument"]
    assert sum(fed) == feeds()
