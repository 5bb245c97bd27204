"""Tensors that programs make, in the tensor map of events: which function they are in, and on which tiles."""

import json

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
    outlined_function,
    pipelining_ops,
    scopes,
    test_utils,
)

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
TILES = 64


@pytest.fixture
def configured(own_environment, monkeypatch):
    """Configures a model of so many IPUs with events; gives a session."""
    helper = test_utils.ReportHelper()
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")

    def configure(ipus=1, **io_tiles):
        made = config.IPUConfig()
        made.auto_select_ipus, made.ipu_model.tiles_per_ipu = ipus, TILES
        for name, value in io_tiles.items():
            setattr(made.io_tiles, name, value)
        test_utils.enable_ipu_events(made)
        helper.set_autoreport_options(made)
        made.configure_ipu_system()
        return helper

    with tf.Graph().as_default(), v1.Session() as session:
        yield configure, session


def mappings(session, fetched, fed=None):
    """What the program that is compiled then makes, by its functions, without arguments; the first is itself."""
    report = test_utils.ReportJSON(None, session)
    report.reset()
    session.run(fetched, fed)
    report.parse_log()
    found = report.get_tensor_map().mappings.items()
    return [(name, [one for one in rows if not one.inst.startswith("arg")]) for name, rows in found]


def compiled(function, shapes):
    fed = [v1.placeholder(tf.float32, shape) for shape in shapes]
    with scopes.ipu_scope("/device:IPU:0"):
        return ipu_compiler.compile(function, fed), {one: np.ones(one.shape) for one in fed}


def kinds(rows):
    return [row.inst.split(".")[0] for row in rows]


def test_what_a_program_makes_and_what_is_only_looked_at(configured):
    configure, session = configured
    configure()
    built, fed = compiled(lambda a, b: tf.reduce_sum(tf.reshape(a + b, [8, 8]), 0), [[64], [64]])
    [(_, rows)] = mappings(session, built, fed)
    assert kinds(rows) == ["add", "reduce"]  # a reshape is where its operand is
    assert [row.shape for row in rows] == [[64], [8]] and rows[0].dtype == "FLOAT32"
    # 64 numbers of 4 bytes, at least 128 bytes on a tile, from the second tile on.
    assert [(part.tile, part.num_elements) for part in rows[0].tiles] == [(1, 32), (2, 32)]


def test_a_tensor_on_all_tiles_is_on_the_first_one_too(configured):
    configure, session = configured
    configure()
    built, fed = compiled(tf.sin, [[32 * TILES - 5]])
    [(_, rows)] = mappings(session, built, fed)
    # The last part, which is shorter, is on the first tile.
    assert [(part.tile, part.num_elements) for part in rows[0].tiles] == [(0, 27)] + [(n, 32) for n in range(1, TILES)]


def test_parts_of_one_call_are_no_tensors(configured):
    configure, session = configured
    configure()
    built, fed = compiled(lambda a, b: a + b * 2.0, [[64], [64]])
    [(_, rows)] = mappings(session, built, fed)
    assert kinds(rows) == ["scaled-inplace"]


def test_of_an_expression_its_result_is_a_tensor(configured):
    configure, session = configured
    configure()
    built, fed = compiled(lambda a, b: tf.reduce_sum(tf.sin((a - b) + 3.5)), [[8], [8]])
    [(_, rows)] = mappings(session, built, fed)
    assert kinds(rows) == ["sine", "reduce"]


def test_products_are_functions_which_all_that_are_alike_share(configured):
    configure, session = configured
    configure()
    built, fed = compiled(lambda a, b, c: tf.matmul(tf.matmul(a, b), tf.matmul(b, c)), [[8, 8], [8, 8], [8, 16]])
    (_, rows), *products = mappings(session, built, fed)
    # 8 x 8 by 8 x 8, and by 8 x 16 twice.
    assert rows == [] and [kinds(made) for _, made in products] == [["dot"], ["dot"]]


def test_loops_are_functions(configured):
    configure, session = configured
    configure()
    built, fed = compiled(lambda a: loops.repeat(3, lambda a: tf.sin(a) + 1.0, a), [[64]])
    (_, rows), (_, inside) = mappings(session, built, fed)[:2]
    assert rows == [] and "sine" in kinds(inside)


def streams(session, shards, size):
    """A program that adds an infeed's element to itself on one IPU, and doubles that on the next, for an outfeed."""
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones(size, np.float32)).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

    def model():
        with scopes.ipu_shard(0):
            x = infeed._dequeue()
            y = x + x
        with scopes.ipu_shard(shards - 1):
            return outfeed.enqueue(y * x)

    with scopes.ipu_scope("/device:IPU:0"):
        built = ipu_compiler.compile(model)
    session.run(infeed.initializer)
    rows = mappings(session, built)[0][1]
    return {row.inst.split(".")[0]: row for row in rows}, session.run(outfeed.dequeue())


def test_feeds_are_on_io_tiles_and_all_else_on_the_others(configured):
    configure, session = configured
    helper = configure(num_io_tiles=16, place_ops_on_io_tiles=True)
    rows, [given] = streams(session, 1, 2048)
    assert given.tolist() == [2.0] * 2048
    # 2,048 numbers: 128 on each of the last 16 of 64 tiles; on 48 tiles 44 numbers, 176 bytes, on each but the last.
    for name in ("infeed", "outfeed"):
        assert [(part.tile, part.num_elements) for part in rows[name].tiles] == [(48 + at, 128) for at in range(16)]
    assert [part.num_elements for part in rows["add"].tiles] == [44] * 46 + [24]
    assert max(rows["multiply"].tile_ids()) < 48
    programs = pva.openReport(helper.find_report()).compilation.programs
    names = [one.name for one in programs if one.type == pva.Program.Type.DoExchange]
    copies = [name for name in names if name.startswith("Copy_") and name.endswith("/inter-tileset-copy")]
    assert [name.endswith("/infeed/inter-tileset-copy") for name in copies] == [True, False]


def test_small_elements_are_one_packet(configured):
    configure, session = configured
    configure(num_io_tiles=16, place_ops_on_io_tiles=True)
    rows, _ = streams(session, 1, 64)
    assert [(part.tile, part.num_elements) for part in rows["infeed"].tiles] == [(48, 64)]


def test_elements_that_do_not_fit_are_not_on_io_tiles(configured):
    configure, session = configured
    configure(num_io_tiles=16, place_ops_on_io_tiles=True, available_memory_proportion=0.0)
    rows, _ = streams(session, 1, 2048)
    # On 64 tiles 32 numbers, which is all of these.
    assert [len(rows[name].tiles) for name in ("infeed", "add", "outfeed")] == [64] * 3


def test_an_ipu_without_feeds_has_no_io_tiles(configured):
    configure, session = configured
    configure(ipus=2, num_io_tiles=16, place_ops_on_io_tiles=True)
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones(2048, np.float32)).repeat())

    def model():
        with scopes.ipu_shard(0):
            y = tf.sin(infeed._dequeue())
        with scopes.ipu_shard(1):
            return tf.cos(y)

    with scopes.ipu_scope("/device:IPU:0"):
        built = ipu_compiler.compile(model)
    session.run(infeed.initializer)
    rows = {row.inst.split(".")[0]: row for row in mappings(session, built)[0][1]}
    assert len(rows["sine"].tiles) == 47 and rows["cosine"].tile_ids() == list(range(TILES, 2 * TILES))
    assert rows["inter-ipu-copy"].tile_ids() == rows["cosine"].tile_ids()


def test_a_program_that_is_given_nothing_but_a_feed_is_compiled(configured):
    configure, session = configured
    configure()
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones(128, np.float16)).repeat())

    def model():
        x = infeed._dequeue()
        return x * x

    with scopes.ipu_scope("/device:IPU:0"):
        built = ipu_compiler.compile(model)
    session.run(infeed.initializer)
    [(_, rows)] = mappings(session, built)
    assert kinds(rows) == ["infeed", "multiply"] and json.dumps(rows[1].shape) == "[128]"


@pytest.mark.parametrize("mapping", [[0, 3, 1], [2, 2, 2]])
def test_forward_stages_of_pipelines_are_functions(configured, mapping):
    configure, session = configured
    configure(ipus=4)
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones([8, 8], "f")).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    stages = [lambda x: tf.sin(tf.matmul(x, x)), lambda x: x, lambda x: tf.reduce_sum(tf.cos(x))]

    def train(loss):
        return pipelining_ops.OptimizerFunctionOutput(v1.train.GradientDescentOptimizer(0.1), loss)

    def model():
        return pipelining_ops.pipeline(
            [lambda x: stages[0](x) * v1.get_variable("w", [8, 8], use_resource=True), *stages[1:]],
            6,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            device_mapping=mapping,
            optimizer_function=train,
            name="net",
        )

    with scopes.ipu_scope("/device:IPU:0"):
        built = ipu_compiler.compile(model)
    session.run(infeed.initializer)
    session.run(v1.global_variables_initializer())
    found = dict(mappings(session, built))
    named = [found[f"net_stage_{number}_forward"] for number in range(3)]
    # The gradient's ops are not in it, products are shared with other stages, and the second makes nothing.
    assert [kinds(rows) for rows in named] == [["sine", "multiply"], [], ["cosine", "reduce"]]
    for rows, ipu in zip(named, mapping):
        assert {tile // TILES for row in rows for tile in row.tile_ids()} <= {ipu}
    assert not any("_stage_3" in name for name in found)


def computations(session, function, shapes):
    """The functions of a program that is compiled and run now, and the compute sets of its profile."""
    built, fed = compiled(function, shapes)
    return {name: kinds(rows) for name, rows in mappings(session, built, fed)}


def test_equal_calls_of_outlined_functions_are_a_function(configured):
    configure, session = configured
    helper = configure()

    @outlined_function
    def layer(x, bias):
        return tf.sin(tf.sigmoid(x) + bias)

    def model(a, b, c):
        return layer(a, a), layer(b, tf.cos(b)), layer(c, c)

    found = computations(session, model, [[64], [64], [32]])
    # The second has two arguments, the third another shape; a single call is part of what calls it.
    assert list(found.values()) == [
        ["sigmoid", "add", "sine", "sigmoid", "cosine", "add", "sine", "sigmoid", "add", "sine"]
    ]
    sets = [one.name for one in pva.openReport(helper.find_report()).compilation.computeSets]
    assert len([name for name in sets if "Nonlinearity" in name]) == 3


def test_gradients_of_outlined_functions_are_functions(configured):
    configure, session = configured
    helper = configure()

    @outlined_function
    def layer(x, w):
        return tf.sigmoid(tf.matmul(x, w) + 1.0)

    def model(a, v, w):
        y = layer(layer(a, v), w)
        return tf.gradients(tf.reduce_sum(y * y), [a, v, w])

    found = computations(session, model, [[8, 8]] * 3)
    assert found["layer"] == ["fusion", "sigmoid"] and found["layer_1, gradient"] == ["sigmoid-grad"]
    assert [name for name in found if name.startswith("layer") and "/" not in name] == ["layer", "layer_1, gradient"]
    sets = [one.name for one in pva.openReport(helper.find_report()).compilation.computeSets]
    assert [name for name in sets if name.endswith("/Nonlinearity")] == ["layer/Sigmoid/sigmoid/Nonlinearity"]
    assert len([name for name in sets if name.endswith("/NonLinearityGrad")]) == 1


def test_calls_with_random_numbers_are_a_function_each(configured):
    configure, session = configured
    configure()

    @outlined_function
    def layer(x):
        return x * tf.random.uniform([64])

    found = computations(session, lambda a, b: (layer(a), layer(b)), [[64], [64]])
    assert [rows.count("multiply") for rows in found.values()] == [2]
