"""`precompiled_user_op` runs the Poplar code of a user's library: values against NumPy, in all kinds of programs."""

from __future__ import annotations

import concurrent.futures
import pathlib
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from slow_cases import slowly
from tf_ipu_shim.ipu import (
    config,
    custom_ops,
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    ipu_strategy,
    loops,
    pipelining_ops,
    scopes,
)

from tf_ipu_shim import memory_report
from tf_ipu_shim.poplar_sdk import toolchain
from tf_ipu_shim.profiling import reader

v1 = tf.compat.v1
SOURCES = pathlib.Path(__file__).with_name("sources")
A, B = np.float32([1, -2, 3]), np.float32([4, -8, 12])


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


@pytest.fixture
def user_op(op_libraries):
    """Calls an op of the library with float32 outputs of these shapes."""

    def call(op_name, inputs, shapes, library="libops5.so", types=None, **options):
        outs = {"output_types": types or [tf.float32] * len(shapes), "output_shapes": list(map(tf.TensorShape, shapes))}
        path, codelets = str(op_libraries / library), str(op_libraries / call.codelets)
        return custom_ops.precompiled_user_op(inputs, path, codelets, outs=outs, op_name=op_name, **options)

    call.codelets = "codelets.gp"
    return call


def compiled(function, *inputs):
    """Runs a compiled TensorFlow 1 program."""
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(value.dtype, value.shape) for value in inputs]
        with scopes.ipu_scope(IPU):
            outputs = ipu_compiler.compile(function, fed)
        session.run(v1.global_variables_initializer())
        return session.run(outputs, dict(zip(fed, inputs, strict=True)))


def turned(x, y, angle):
    x, y, angle = (value.astype(np.float32) for value in (x, y, angle))
    return x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)


@pytest.fixture(params=["xla", "kernels"])
def mode(request, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    configure()
    return request.param


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-6), (np.float16, 2e-3)])
def test_a_codelet_with_two_outputs(user_op, mode, dtype, tolerance):
    x, y, angle = np.random.default_rng(1).uniform(-2, 2, (3, 1000)).astype(dtype)

    def rotate(*values):
        return user_op("Build", values, [[1000], [1000]], types=[dtype, dtype])

    for results in (compiled(rotate, x, y, angle), rotate(x, y, angle)):
        for got, expected in zip(results, turned(x, y, angle), strict=True):
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_a_variable_updated_in_place(user_op, mode):
    def program(part):
        with v1.variable_scope("v", use_resource=True):
            weights = v1.get_variable("weights", [3], initializer=v1.zeros_initializer())
        update = weights.assign(user_op("AddInPlace", [weights, part], [[3]])[0])
        with tf.control_dependencies([update]):
            return weights.read_value()

    with tf.Graph().as_default(), v1.Session() as session:
        part = v1.placeholder(tf.float32, [3])
        with scopes.ipu_scope(IPU):
            result = ipu_compiler.compile(program, [part])
        session.run(v1.global_variables_initializer())
        for runs in (1, 2, 3):
            np.testing.assert_array_equal(session.run(result, {part: A})[0], runs * A)


def test_an_operand_is_not_changed(user_op, mode):
    total, left, right = compiled(lambda a, b: [user_op("AddInPlace", [a, b], [[3]])[0], a, b], A, B)
    np.testing.assert_array_equal(total, A + B)
    np.testing.assert_array_equal(left, A)
    np.testing.assert_array_equal(right, B)


def test_operands_in_another_layout(user_op, mode):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([[1, 2], [3, 4]])

    def program(a, b):
        product = user_op("Product", [tf.transpose(a), tf.matmul(a, b, transpose_a=True)], [[3, 2]])[0]
        return product, tf.matmul(a, product)

    product, after = compiled(program, a, b)
    expected = a.T * (a.T @ b)
    np.testing.assert_array_equal(product, expected)
    np.testing.assert_array_equal(after, a @ expected)


@pytest.mark.parametrize("op_name, factors", [("Product", (3, 3)), ("Separate", (1, 10)), ("Partial", (1, 0))])
def test_gradients_built_by_the_library(user_op, mode, op_name, factors):
    def product(a, b):
        options = {"separate_gradients": op_name == "Separate", "attributes": "2", "gradient_attributes": "3"}
        return user_op(op_name, [a, b], [[3]], **options)[0]

    def program(a, b):
        result = product(a, b)
        return [result, *v1.gradients(result * 2.0, [a, b])]

    a, b = tf.constant(A), tf.constant(B)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        result = product(a, b)
        doubled = result * 2.0
    for value, to_a, to_b in (compiled(program, A, B), [result, *tape.gradient(doubled, [a, b])]):
        np.testing.assert_array_equal(value, 2 * A * B)
        np.testing.assert_array_equal(to_a, 2 * factors[0] * B)
        np.testing.assert_array_equal(to_b, 2 * factors[1] * A)


def test_inputs_without_gradients(user_op):
    a, b = tf.constant(A), tf.constant(B)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        result = user_op("Separate", [a, b], [[3]], separate_gradients=True, inputs_with_gradients=[1])[0]
    to_a, to_b = tape.gradient(result, [a, b])
    assert to_a is None
    np.testing.assert_array_equal(to_b, 10 * A)


@pytest.mark.parametrize(
    "level, op_name, expected",
    [
        (1, "First", 7 * A * B),
        (2, "Second", A + 2 * B),
        (3, "Third", A + 2 * B),
        (4, "Fourth", A + 2 * B),
        (5, "Product", 2 * A * B),
    ],
)
def test_api_levels(user_op, level, op_name, expected):
    (result,) = user_op(op_name, [A, B], [[3]], library=f"libops{level}.so", attributes="2")
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("flags, factor", [("", 1), ("--use_ipu_model", 2)])
def test_the_type_of_the_target(user_op, monkeypatch, flags, factor):
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    config.reset_ipu_configuration()
    configure()
    (result,) = compiled(lambda a, b: user_op("OnModel", [a, b], [[3]]), A, B)
    np.testing.assert_array_equal(result, factor * A * B)


def test_the_first_level_has_gradients_without_attributes(user_op):
    a = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(a)
        (result,) = user_op("First", [a, B], [[3]], library="libops1.so", attributes="2")
    np.testing.assert_array_equal(tape.gradient(result, a), 7 * B)


def test_state_is_kept_between_runs_and_not_shared(user_op, mode):
    def program(a):
        first = user_op("Sum", [a], [[3]], name="first")[0]
        return loops.repeat(2, lambda x, y: [x, user_op("Sum", [x], [[3]], name="second")[0]], [a, first])[1], first

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [3])
        with scopes.ipu_scope(IPU):
            outputs = ipu_compiler.compile(program, [fed])
        for run in (1, 2):
            second, first = session.run(outputs, {fed: A})
            np.testing.assert_array_equal(first, run * A)
            np.testing.assert_array_equal(second, 2 * run * A)


def test_results_that_nothing_needs(user_op, mode, capfd):
    def program(op_name):
        def step(a):
            user_op(op_name, [a], [] if op_name == "Prints" else [[3]])
            return a + 1.0

        return step

    np.testing.assert_array_equal(compiled(program("Unneeded"), A)[0], A + 1)
    with pytest.raises(tf.errors.InternalError, match="the vertex refuses"):
        compiled(program("VertexThrows"), A)
    np.testing.assert_array_equal(compiled(program("Prints"), A)[0], A + 1)
    assert "seen" in "".join(capfd.readouterr())


def test_loops_and_feeds(user_op, mode):
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    strategy = ipu_strategy.IPUStrategy()

    @tf.function(jit_compile=True)
    def step(iterator):
        a = tf.constant(A)
        for _ in tf.range(4):
            a = user_op("Product", [a, next(iterator)], [[3]], attributes="0.5")[0]
            outfeed.enqueue(a)
        return a

    with strategy.scope():
        result = strategy.run(step, [iter(tf.data.Dataset.from_tensors(B).repeat())])
    expected = [A * (B / 2) ** power for power in (1, 2, 3, 4)]
    np.testing.assert_array_equal(result, expected[-1])
    np.testing.assert_array_equal(outfeed.dequeue(), expected)


@pytest.mark.parametrize("schedule", ["Grouped", "Sequential"])
def test_pipelines(user_op, schedule):
    configure(2)
    batches = np.float32([A, B, A + B, A - B])

    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(batches).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def program():
            return pipelining_ops.pipeline(
                [
                    lambda a: user_op("Product", [a, a], [[3]], name="square")[0],
                    lambda a: user_op("Product", [a, a], [[3]], attributes="2", name="again")[0],
                ],
                gradient_accumulation_count=4,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                pipeline_schedule=getattr(pipelining_ops.PipelineSchedule, schedule),
            )

        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(program, [])
        dequeued = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        results = session.run(dequeued)
    np.testing.assert_allclose(results, 2 * batches**4, rtol=1e-6)


def test_an_op_of_a_stage_on_all_ipus_is_built_for_them(user_op):
    configure(2)
    xs, rate = np.float32([[1, 2], [3, -1]]), 0.01
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(xs).repeat())
        outfeed, optimizer = ipu_outfeed_queue.IPUOutfeedQueue(), v1.train.GradientDescentOptimizer(rate)

        def on_all_ipus(x):
            x *= v1.get_variable("weights", initializer=np.float32([1, 2]), use_resource=True)
            return user_op("OnEachIpu", [x], [[2]], inputs_with_gradients=[0])[0]

        def program():
            return pipelining_ops.pipeline(
                [lambda x: x + 1, on_all_ipus, tf.reduce_sum],
                gradient_accumulation_count=2,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=lambda loss: pipelining_ops.OptimizerFunctionOutput(optimizer, loss),
                device_mapping=[0, pipelining_ops._ALL_DEVICES, 1],
                pipeline_schedule=pipelining_ops.PipelineSchedule.Sequential,
                reduction_method="sum",
            )

        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(program, [])
        dequeued = outfeed.dequeue()
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(run)
        losses, (weights,) = session.run([dequeued, v1.global_variables()])
    products = (xs + 1) * np.float32([1, 2])
    np.testing.assert_allclose(np.ravel(losses), (2 * products**2).sum(1), rtol=1e-6)
    np.testing.assert_allclose(weights, [1, 2] - rate * (2 * 2 * products * (xs + 1)).sum(0), rtol=1e-6)


def test_replicas(user_op):
    configure(2)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    strategy = ipu_strategy.IPUStrategy()

    @tf.function(jit_compile=True)
    def step(iterator):
        outfeed.enqueue(user_op("Product", [next(iterator), A], [[3]])[0])

    with strategy.scope():
        strategy.run(step, [iter(tf.data.Dataset.from_tensor_slices(np.float32([A, B])).repeat())])
    np.testing.assert_array_equal(np.sort(outfeed.dequeue()[0], axis=0), np.sort([A * A, B * A], axis=0))


def test_keras_layers_train(user_op):
    class Weighted(tf.keras.layers.Layer):
        def build(self, _):
            self.weight = self.add_weight("weight", [4, 3], initializer="ones")

        def call(self, x):
            return user_op("Product", [x, self.weight], [[4, 3]], gradient_attributes="1")[0]

    x = np.random.default_rng(2).uniform(-1, 1, (8, 3)).astype(np.float32)
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        inputs = tf.keras.Input([3], batch_size=4)
        model = tf.keras.Model(inputs, Weighted()(inputs))
        model.compile("sgd", "mse", steps_per_execution=2)
        model.fit(x, np.zeros_like(x), batch_size=4, epochs=1, shuffle=False, verbose=0)
        (weight,) = model.get_weights()
    expected = np.ones((4, 3), np.float32)
    for batch in (x[:4], x[4:]):
        expected = expected - 0.01 * 2 * batch * (batch * expected) / batch.size
    np.testing.assert_allclose(weight, expected, rtol=1e-5)


def test_eagerly_under_a_strategy(user_op):
    with ipu_strategy.IPUStrategy().scope():
        (result,) = user_op("Product", [tf.constant(A), tf.constant(B)], [[3]], attributes="2")
    np.testing.assert_array_equal(result, 2 * A * B)


def test_several_threads_have_memory_of_their_own(user_op):
    size = 20_000

    def run(index):
        a = np.full(size, index, np.float32)
        return user_op("Product", [a, a], [[size]], name="threads")[0].numpy()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for index, result in enumerate(pool.map(run, range(20))):
            np.testing.assert_array_equal(result, np.full(size, index**2))


def test_an_emulation_has_precedence(user_op, op_libraries):
    custom_ops.register_emulation(str(op_libraries / "libops5.so"), lambda a, b: a - b)
    try:
        np.testing.assert_array_equal(user_op("Product", [A, B], [[3]])[0], A - B)
    finally:
        custom_ops.register_emulation(str(op_libraries / "libops5.so"), None)
    np.testing.assert_array_equal(user_op("Product", [A, B], [[3]])[0], A * B)


def test_empty_tensors_and_scalars(user_op):
    assert user_op("Product", [np.zeros([0, 2], np.float32)] * 2, [[0, 2]])[0].shape == (0, 2)
    assert user_op("Product", [np.float32(3), np.float32(4)], [[]])[0].numpy() == 12


ERRORS = {
    "no file": ("libnone.so", "Product", r"the file does not exist.*register_emulation"),
    "text": ("libtext.so", "Product", "cannot be loaded: .*Compile it again"),
    "cut": ("libcut.so", "Product", r"cannot be loaded: it was cut short: it has \d+ bytes; .*Compile it again"),
    "function": ("libmissing.so", "Product", r"calls popops::notThere\(int\), which is not"),
    "headers": ("libplain.so", "Build", "other Poplar headers; .*tf-ipu poplar --shell"),
    "level": ("libops99.so", "Product", "is 99; expected 1 to 5. Set custom_op_api_level"),
    "builder": ("libops5.so", "None", "has no function None; expected one that is declared"),
    "count": ("libops5.so", "Nothing", "made 0 outputs; expected 1, as `outs` says"),
    "shape": ("libops5.so", "WrongShape", r"is float, shape \{1\}; expected float, shape \{3\}"),
    "type": ("libops5.so", "Product", "expected int, shape"),
    "allocated": ("libops5.so", "OtherInput", r"OtherInput_metadata of .* allocates input 2; the op has 2 inputs"),
    "alias of input": ("libops5.so", "AliasOfOtherInput", r"gives input -1 the memory of an output; the op has 2 inp"),
    "alias of output": (
        "libops5.so",
        "AliasOfOtherOutput",
        r"gives output 1 the memory of an input; the op has 1 out",
    ),
    "identical": ("libops5.so", "OtherIdentical", r"says that output 1 is equal on all replicas; the op has 1 outp"),
    "exception": ("libops5.so", "Refuses", "std::invalid_argument: attributes"),
    "replicas": ("libops5.so", "ReducesReplicas", "gcl::allReduceCrossReplica.*other replicas.*cross_replica_ops"),
    "unmapped": ("libops5.so", "Unmapped", "lost"),
    "vertex": ("libops5.so", "VertexThrows", "the vertex refuses"),
}


@pytest.mark.parametrize("case", sorted(ERRORS))
@pytest.mark.parametrize("way", ["program", "eager"])
def test_errors(user_op, case, way):
    library, op_name, message = ERRORS[case]
    kind = tf.errors.NotFoundError if case in ("no file", "builder") else tf.errors.InternalError
    options = {"type": {"types": [tf.int32]}, "exception": {"attributes": "x"}}.get(case, {})

    def step(a, b):
        return user_op(op_name, [a, b], [[3]], library=library, **options)

    with pytest.raises(kind, match=f"(?s){message}") as raised:
        compiled(step, A, B) if way == "program" else step(A, B)
    assert way == "program" or len(str(raised.value)) < 600


def test_a_vertex_that_fails_names_the_op_and_its_line(user_op, mode):
    made_at = r"the vertex refuses\. Op \S+ \(IpuUserOp\), made at \S+/test_poplar_ops\.py:\d+"
    with pytest.raises(tf.errors.InternalError, match=made_at):
        compiled(lambda a: user_op("VertexThrows", [a, a], [[3]]), A)


def test_a_gradient_that_the_library_has_not(user_op):
    a = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(a)
        (result,) = user_op("AddInPlace", [a, B], [[3]])
    with pytest.raises(tf.errors.NotFoundError, match="has no function AddInPlace_grad; expected"):
        tape.gradient(result, a)


@pytest.mark.parametrize("op_name", ["BuildCrashes", "VertexCrashes"])
def test_crashes_are_errors_in_checked_runs(user_op, monkeypatch, op_name):
    monkeypatch.setenv("TF_IPU_SHIM_CHECK_CODELETS", "1")
    with pytest.raises(tf.errors.InternalError, match=f"{op_name} of .*libops5.so.* crashed: Aborted.*gdb"):
        user_op(op_name, [A, B], [[3]])
    np.testing.assert_array_equal(user_op("Product", [A, B], [[3]], name="checked")[0], A * B)


@pytest.mark.parametrize("op_name", ["OtherLevel", "NoLevel", "Counts", slowly("Waits")])
def test_metadata_of_another_signature(user_op, op_name):
    message = rf"{op_name}_metadata of .*expected \(std::vector<.*std::uint32_t\). Change them, or custom_op_api_level"
    with pytest.raises(tf.errors.InternalError, match=f"(?s){message}"):
        user_op(op_name, [A, B], [[3]])
    np.testing.assert_array_equal(user_op("Product", [A, B], [[3]], name="after")[0], A * B)


def test_an_allocator_of_another_signature(user_op, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_CHECK_CODELETS", "1")
    with pytest.raises(tf.errors.InternalError, match="Misplaced_allocator of .*libops5.so crashed: Segmentation"):
        user_op("Misplaced", [A, B], [[3]])


def test_a_library_that_is_compiled_again(user_op, op_libraries, tmp_path):
    path = tmp_path / "libagain.so"
    path.write_bytes((op_libraries / "libops1.so").read_bytes())
    outs = {"output_types": [tf.float32], "output_shapes": [[3]]}
    options = {"gp_path": str(op_libraries / "codelets.gp"), "outs": outs}
    (first,) = custom_ops.precompiled_user_op([A, B], str(path), op_name="First", **options)
    np.testing.assert_array_equal(first, 7 * A * B)
    path.unlink()
    path.write_bytes((op_libraries / "libops5.so").read_bytes())
    (second,) = custom_ops.precompiled_user_op([A, B], str(path), op_name="Product", **options)
    np.testing.assert_array_equal(second, A * B)


SIZE = 3 * 4


def test_memory_lies_on_the_tiles_that_the_library_maps_it_to(user_op):
    compiled(lambda a, b: user_op("Mapped", [a, b], [[3]], name="mapped")[0], A, B)
    (program,) = memory_report().devices[-1].programs
    by_tile = program.ipus[0].tile_bytes
    assert by_tile[3] == SIZE and by_tile[5] >= SIZE
    assert by_tile[0] >= SIZE  # the other operand, mapped linearly
    assert program.ipus[0].max_tile == 5  # the result, and the state of its vertex
    assert not any(by_tile[6:])


@pytest.mark.parametrize("estimates", ["", "-DESTIMATES"])
def test_profiles_have_the_compute_sets(user_op, op_libraries, tmp_path, monkeypatch, estimates):
    monkeypatch.setenv("TF_IPU_SHIM_PROFILE_DIR", str(tmp_path / "profiles"))
    if estimates:
        command = [f"{toolchain.build_libraries()}/bin/popc", estimates, SOURCES / "codelets.cpp", "-o", "estimates.gp"]
        subprocess.run(command, cwd=op_libraries, check=True)
        monkeypatch.setattr(user_op, "codelets", "estimates.gp")
    configure()
    x, y = np.ones([2, 1472 * 6 * 100], np.float32)
    compiled(lambda x, y: user_op("Product", [x, y], [[1472 * 600]], name="wide")[0], x, y)
    profiles = [reader.read_profile(folder) for folder in (tmp_path / "profiles").iterdir()]
    (times,) = [row for profile in profiles for row in profile.compute_sets if row.name == "wide/Times"]
    assert (times.vertex, times.vertices, times.tiles) == ("Times", 1472, 1472)
    assert times.cycles == 6 * (1000 + 600) if estimates else times.cycles > 600


def test_exchanges_are_what_crosses_tiles(user_op, tmp_path, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_PROFILE_DIR", str(tmp_path / "profiles"))
    configure()
    compiled(lambda a, b: user_op("Mapped", [a, b], [[3]], name="mapped")[0], A, B)
    profiles = [reader.read_profile(folder) for folder in (tmp_path / "profiles").iterdir()]
    rows = [row for profile in profiles for row in profile.programs if row.name == "mapped/Times"]
    assert {row.kind: row.bytes for row in rows} == {"sync": 0, "exchange": 2 * SIZE, "compute": 0}
