"""Programs that run by TensorFlow's own kernels (`TF_IPU_SHIM_EXECUTION_MODE=kernels`) instead of XLA launches."""

import json

import numpy as np
import pytest
import tensorflow as tf
from harness import CPU, IPU, EagerParts, check_function, check_session, configure, rewriting_off, run_session
from kernel_programs import compiled
from slow_cases import slowly
from tf_ipu_shim.ipu import config, ipu_compiler, scopes

import tf_ipu_shim
from tf_ipu_shim import ipu, plugin
from tf_ipu_shim.driver import planned_program

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1

RANDOM = np.random.default_rng(11)

IMAGES = RANDOM.normal(size=(4, 8, 8, 3)).astype(np.float32)

ROWS = RANDOM.normal(size=(4, 6)).astype(np.float32)

WORDS = RANDOM.normal(size=(2, 5, 8)).astype(np.float32)

LABELS = np.array([0, 2, 1, 2], np.int32)


@pytest.fixture(autouse=True)
def by_kernels(own_environment, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")


def values(*shape):
    return np.random.default_rng(shape).normal(size=shape) / 3


def loss_of(logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=LABELS, logits=logits))


def dense(parts, x):
    hidden = tf.nn.relu(tf.matmul(x, parts.variable("w0", values(6, 16))) + parts.variable("b0", values(16)))
    return loss_of(
        tf.nn.bias_add(tf.matmul(hidden, parts.variable("w1", values(16, 3))), parts.variable("b1", values(3)))
    )


def convolution(parts, x):
    made = tf.nn.conv2d(x, parts.variable("k0", values(3, 3, 3, 8)), 1, "SAME")
    made = tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(made, parts.variable("b0", values(8)))), 2, 2, "VALID")
    made = tf.nn.relu(tf.nn.conv2d(made, parts.variable("k1", values(3, 3, 8, 4)), 2, "SAME"))
    return loss_of(tf.matmul(tf.reshape(made, [4, 16]), parts.variable("w", values(16, 3))))


def norm(parts, x):
    made = tf.nn.conv2d(x, parts.variable("k", values(3, 3, 3, 4)), 1, "SAME")
    scale, offset = parts.variable("scale", values(4)), parts.variable("offset", values(4))
    made, _, _ = v1.nn.fused_batch_norm(made, scale, offset, epsilon=1e-3)
    mean, variance = tf.nn.moments(made, [1, 2, 3], keepdims=True)
    made = tf.nn.batch_normalization(made, mean, variance, None, None, 1e-5)
    return loss_of(tf.matmul(tf.reduce_mean(made, [1, 2]), parts.variable("w", values(4, 3))))


def attention(parts, x):
    q, k, v = (tf.einsum("bsd,dhe->bhse", x, parts.variable(name, values(8, 2, 4))) for name in "qkv")
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)
    made = tf.einsum("bhse,hed->bsd", tf.matmul(weights, v), parts.variable("o", values(2, 4, 8))) + x
    mean, variance = tf.nn.moments(made, [-1], keepdims=True)
    made = tf.nn.gelu((made - mean) * tf.math.rsqrt(variance + 1e-5))
    return tf.reduce_mean(tf.square(tf.matmul(made, parts.variable("w", values(8, 3)))))


def losses(model, data, device, steps=5):
    """A model trained by a step that is a `tf.function`, on the IPU a program: losses and weights."""
    parts = EagerParts(device, marked=False)

    def step(x):
        with tf.GradientTape() as tape:
            loss = model(parts, x)
        weights = [name for name in parts.variables if not name.endswith("_momentum")]
        for name, gradient in zip(weights, tape.gradient(loss, [parts.variables[name] for name in weights])):
            weight = parts.variables[name]
            momentum = parts.variable(f"{name}_momentum", np.zeros(weight.shape))
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=momentum.handle, lr=0.1, grad=gradient, momentum=0.9
            )
        return loss

    def program(x):
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(step, [x])[0]

    function = tf.function(program if device == IPU else step, autograph=False)
    with rewriting_off(device == CPU), tf.device(None if device == IPU else CPU):
        found = [function(tf.constant(data)).numpy() for _ in range(steps)]
    return found, {name: variable.numpy() for name, variable in parts.variables.items()}


@pytest.mark.parametrize(
    ("model", "data"),
    [(dense, ROWS), (convolution, IMAGES), (norm, IMAGES), (attention, WORDS)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_one_ipu_gives_the_bits_of_stock_tensorflow(model, data):
    configure(1)
    found, weights = losses(model, data, IPU)
    expected, wanted = losses(model, data, CPU)
    assert found == expected
    assert len(set(expected)) == 5, "it learns"
    for name, value in wanted.items():
        np.testing.assert_array_equal(weights[name], value, err_msg=name)
    assert ways() == {"kernels"}


def ways():
    (device,) = tf_ipu_shim.memory_report().devices
    return {plan.mode for plan in device.programs}


# What stays as it is


def sharded(parts, x):
    """Two IPUs with a loop on each, a branch, a called function and a variable that both steps change."""
    with parts.shard(0):
        weight = parts.variable("weight", values(6, 6))
        made = tf.matmul(x, weight)
        _, made = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(y @ weight)), (0, made))
    with parts.shard(1):
        made = tf.cond(tf.reduce_sum(made) > 0, lambda: made * 2.0, lambda: made - 1.0)
        total = parts.variable("total", np.zeros([4, 6]))
        with tf.control_dependencies([total.assign_add(made)]):
            return [total.read_value(), made]


def test_two_ipus_against_the_cpu():
    configure(2)
    library = plugin.load()
    library.reset_counters(0)
    check_session(sharded, [ROWS], steps=3)
    assert all(library.peak_bytes(0, ipu) > 0 for ipu in (0, 1))
    assert library.exchange(0, 0, 1).transfers == 3
    check_function(sharded, [ROWS], steps=2)


def figures(monkeypatch, execution_mode, model, inputs, ipus):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    configure(ipus)
    library = plugin.load()
    library.reset_counters(0)
    run_session(model, inputs, steps=3, on_ipu=True)
    counted = (
        library.programs_lowered(0),
        library.programs_compiled(0),
        library.programs_run(0),
        library.exchange(0, 0, 1),
    )
    (device,) = json.loads(tf_ipu_shim.memory_report().to_json())["devices"]
    config.reset_ipu_configuration()
    return counted, device["modelled"]["programs"]


def test_counters_and_modelled_memory_are_those_of_the_other_way(monkeypatch):
    (counted, programs), (by_xla, planned) = (
        figures(monkeypatch, way, sharded, [ROWS], 2) for way in ("kernels", "xla")
    )
    assert counted == by_xla
    assert [program["mode"] for program in programs] == ["kernels"] * len(programs)
    assert [program["mode"] for program in planned] == ["xla"] * len(planned)
    for program in (*programs, *planned):
        del program["mode"], program["mode_reason"]
    assert programs == planned


def test_each_ipu_holds_what_it_computes():
    """Temporaries of an IPU are in its arena: two matrices of 1 MB on IPU 1, nothing like it on IPU 0."""
    configure(2)

    def model(parts, x):
        with parts.shard(0):
            small = tf.tanh(x)
        with parts.shard(1):
            large = tf.broadcast_to(tf.reshape(small, [1, -1]), [512, 512])
            return tf.reduce_sum(tf.matmul(large, large))

    library = plugin.load()
    library.reset_counters(0)
    before = [library.live_bytes(0, chip) for chip in (0, 1)]  # what earlier tests have left there
    run_session(model, [np.linspace(0, 1, 512, dtype=np.float32)], on_ipu=True)
    assert library.peak_bytes(0, 1) - before[1] >= 2 << 20
    assert library.peak_bytes(0, 0) - before[0] < 1 << 20


def in_a_marked_function(chosen):
    """A function with a mark, called on the same IPU: it is one XLA program with what calls it."""

    @tf.function(autograph=False)
    def called(x):
        with scopes.ipu_shard(0):
            return chosen(x) * 2

    return lambda x: tf.reduce_sum(called(x))


REFUSED = {
    "no XLA kernel": lambda x: tf.raw_ops.Unbatch(
        batched_tensor=x, batch_index=[[0, 0, 1]], id=tf.constant(0, tf.int64), timeout_micros=1
    ),
    "shapes that depend on values": lambda x: tf.where(x > 0),
    "such shapes in a marked function": in_a_marked_function(lambda x: tf.boolean_mask(x, x > 2)),
    "such numbers in a marked function": in_a_marked_function(lambda x: tf.unique(x)[0]),
    "the gradient of rows of concatenated matrices": lambda x: tf.gradients(
        in_a_marked_function(lambda y: tf.gather(tf.concat([y, y], 0), [1, 5]))(x), x
    ),
    "a shape that is computed": lambda x: tf.reshape(x, tf.cast(x[:2], tf.int32) * 0 + 2),
    "a list without a bound": lambda x: tf.while_loop(
        lambda a: tf.reduce_sum(a) < 10, lambda a: tf.concat([a, a], 0), [x], shape_invariants=[tf.TensorShape([None])]
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_an_ipu_cannot_compile_is_refused_in_the_same_words(monkeypatch, what):
    texts = []
    for way in ("xla", "kernels", "auto"):
        monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", way)
        with tf.Graph().as_default(), v1.Session() as session:
            result = compiled(REFUSED[what], tf.constant([1.0, 2.0, 3.0, 4.0]))
            with pytest.raises(tf.errors.OpError) as refusal:
                session.run(result)
        texts.append(refusal.value.message.split("\n")[0])
        config.reset_ipu_configuration()
    assert texts[0] == texts[1] == texts[2]


def test_a_program_that_xla_must_see_running_is_run_by_xla():
    """How many numbers there are is an argument's value, which XLA knows when it runs."""
    configure(1)
    with tf.Graph().as_default(), v1.Session() as session:
        count = v1.placeholder(tf.int32, [])
        result = compiled(lambda n: tf.range(n) * 2, count)
        assert session.run(result, {count: 3})[0].tolist() == [0, 2, 4]
    (device,) = tf_ipu_shim.memory_report().devices
    (plan,) = device.programs
    assert plan.mode == "xla" and "XLA has no HLO" in plan.mode_reason
    assert "by XLA programs" in tf_ipu_shim.memory_report().to_text(verbose=True)


def test_the_report_says_how():
    configure(1)
    run_session(dense, [ROWS], on_ipu=True)
    report = tf_ipu_shim.memory_report()
    assert "by TensorFlow's kernels, TF_IPU_SHIM_EXECUTION_MODE=kernels" in report.to_text(verbose=True)
    assert "by TensorFlow's kernels" not in report.to_text()


def test_without_a_memory_plan(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", "off")
    configure(2)
    check_session(sharded, [ROWS], steps=2)
    assert not any(device.programs for device in tf_ipu_shim.memory_report().devices)


def test_another_way_is_refused(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "jax")
    ways = "'auto', 'xla' or 'kernels'"
    with tf.Graph().as_default(), v1.Session() as session, pytest.raises(tf.errors.OpError, match=ways):
        session.run(compiled(lambda x: x + 1.0, tf.constant(1.0)))


# Order, errors, random numbers


def test_what_is_done_to_a_variable_is_done_in_order():
    """In a session's graph nothing orders reads and writes but the order in which they were made."""
    with tf.Graph().as_default(), v1.Session() as session:

        def model(x):
            state = v1.get_variable("state", [256, 256], initializer=v1.zeros_initializer(), use_resource=True)
            before = state.read_value()
            for _ in range(20):  # something that takes longer than the assignment
                x = tf.tanh(x @ x)
            after = state.assign(state.read_value() + 1.0)
            with tf.control_dependencies([after.op if hasattr(after, "op") else after]):
                return before, state.read_value(), x

        result = compiled(model, tf.ones([256, 256]) / 256)
        session.run(v1.global_variables_initializer())
        for step in range(5):
            before, after, _ = session.run(result)
            assert (before == step).all() and (after == step + 1).all()


@pytest.mark.parametrize("nested", [False, True])
def test_a_loop_continues_while_a_forwarded_value_is_late(nested):
    def add(count, y, kept):
        return count + 1, y + 1.0, kept

    def add_twice(count, y, kept):
        _, y, _ = tf.while_loop(lambda count, *_: count < 2, add, (0, y, kept))
        return count + 1, y, kept

    def model(x):
        late = x
        for _ in range(30):
            late = tf.matmul(late, x)
        start = (0, tf.zeros([2]), late)
        _, y, kept = tf.while_loop(lambda count, *_: count < 3, add_twice if nested else add, start)
        return y, kept

    configure(1)
    unit = np.eye(256, dtype=np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, unit.shape)
        y, kept = session.run(compiled(model, x), {x: unit})
    np.testing.assert_array_equal(y, [6.0, 6.0] if nested else [3.0, 3.0])
    np.testing.assert_array_equal(kept, unit)


def test_an_iterator_enters_nested_loops_by_a_handle_on_the_ipu(monkeypatch):
    """Else TensorFlow leaves it on the host now and then, where only the outer loop's first iteration hands it on."""
    configure(1)
    made = []
    by_kernels = planned_program.to_kernels

    def spy(*given, **options):
        made.append(by_kernels(*given, **options))
        return made[-1]

    monkeypatch.setattr(planned_program, "to_kernels", spy)
    strategy = ipu.ipu_strategy.IPUStrategy()
    with strategy.scope():
        iterator = iter(tf.data.Dataset.from_tensor_slices(np.arange(100, dtype="f")))

        @tf.function
        def function(iterator):
            total = tf.constant(0.0)
            for _ in tf.range(3):
                for _ in tf.range(4):
                    total += next(iterator)
                total *= 2.0
            return total

        assert strategy.run(function, (iterator,)).numpy() == ((6 * 2 + 22) * 2 + 38) * 2
    nodes = {node.name: node for function in made[-1].functions for node in function.node_def}
    entries = [node for node in nodes.values() if node.op == "Enter" and node.attr["T"].type == 20]
    sources = [node.input[0].partition(":")[0] for node in entries]
    assert [nodes[name].op for name in sources] == ["IpuHandle", "IpuHandle"]


def test_an_error_of_a_kernel_leaves_the_next_run_alone():
    configure(1)
    with tf.Graph().as_default(), v1.Session() as session:
        index = v1.placeholder(tf.int32, [1])
        result = compiled(lambda i: tf.gather(tf.constant([1.0, 2.0]), i), index)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] = 7 is not in \[0, 2\)"):
            session.run(result, {index: [7]})
        assert session.run(result, {index: [1]})[0].tolist() == [2.0]


def test_an_error_in_a_loop_with_feeds_keeps_its_words():
    """It cancels what runs beside it, on the host and on other IPUs, and is reported all the same."""
    configure(2)
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = tf.data.Dataset.from_tensor_slices(np.array([0, 0, 1, 7], np.int32))
        infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

        def body(index):
            with scopes.ipu_shard(0):
                taken = tf.gather(tf.constant([1.0, 2.0]), index)
            with scopes.ipu_shard(1):
                return outfeed.enqueue(taken * 2.0)

        program = compiled(lambda: ipu.loops.repeat(4, body, [], infeed))
        dequeued = outfeed.dequeue()
        session.run(infeed.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices = 7 is not in \[0, 2\)"):
            session.run(program)
        assert session.run(dequeued).tolist() == [2.0, 2.0, 4.0]


RANDOMS = {
    "uniform": lambda: tf.random.uniform([7]),
    "normal": lambda: tf.random.normal([3, 3]),
    "truncated": lambda: tf.random.truncated_normal([5]),
    "integers": lambda: tf.random.uniform([6], 0, 1000, tf.int32),
    "categorical": lambda: tf.random.categorical([[0.0, 1.0, 2.0, 1.0]], 9),
    "dropout": lambda: tf.nn.dropout(tf.ones([20]), 0.5),
    "stateless": lambda: tf.random.stateless_normal([4], tf.random.uniform([2], 0, 1 << 30, tf.int32)),
}


@pytest.mark.parametrize(
    "what", [what if what in ("uniform", "dropout", "stateless") else slowly(what) for what in RANDOMS]
)
def test_random_numbers_do_not_hang_on_the_way(monkeypatch, what):
    drawn = []
    for way in ("xla", "kernels"):
        monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", way)
        configure(2)
        ipu.utils.reset_ipu_seed(5)

        def model():
            with scopes.ipu_shard(0):
                first = RANDOMS[what]()
            with scopes.ipu_shard(1):
                return first, RANDOMS[what]()

        with tf.Graph().as_default(), v1.Session() as session:
            result = compiled(model)
            drawn.append([value for _ in range(2) for value in session.run(result)])
        config.reset_ipu_configuration()
    assert len({value.tobytes() for value in drawn[0]}) == 4, "all are drawn anew"
    for ours, theirs in zip(*drawn):
        np.testing.assert_array_equal(ours, theirs)
