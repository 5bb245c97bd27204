"""Both execution modes give what stock TensorFlow's kernels give, also for NaN, infinity and out of range."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import ipu_compiler, scopes

from tf_ipu_shim.compiler.ir import program
from tf_ipu_shim.compiler.ir.reachable import reached_functions
from tf_ipu_shim.compiler.xla_semantics import kernels_only

pytestmark = pytest.mark.usefixtures("configured_in_each_mode")

HOSTILE = np.array([4.0, 5.5, np.nan, -np.inf, np.inf, 3e9, -3e9, 0.0, -0.0, 1e20], np.float32)
LARGEST = np.finfo(np.float32).max


def on_ipu(function, *arguments):
    with tf.device(IPU):
        return tf.function(function, jit_compile=True)(*[tf.constant(one) for one in arguments])


def check(functions, *arguments):
    """All of them in one program give what each of them gives op by op on the CPU."""
    with tf.device("CPU"):
        wanted = [function(*map(tf.constant, arguments)) for function in functions.values()]
    found = on_ipu(lambda *taken: [function(*taken) for function in functions.values()], *arguments)
    for name, expected, made in zip(functions, wanted, found, strict=True):
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-5, err_msg=name)


def test_maxima_minima_and_clips():
    check(
        {
            "reduce_max": lambda x: tf.reduce_max(x[:4]),
            "reduce_min": lambda x: tf.reduce_min(x[:3]),
            "rows": lambda x: tf.reduce_max(tf.reshape(x, [2, 5]), 1),
            "maximum": lambda x: tf.maximum(x, 1.0),
            "minimum": lambda x: tf.minimum(1.0, x),
            "clip": lambda x: tf.clip_by_value(x, -1.0, 5.0),
            "relu6": tf.nn.relu6,
            "argmax": lambda x: tf.argmax(x[:4]),
            "argmin": lambda x: tf.argmin(x[2:4]),
            "max_pool": lambda x: tf.nn.max_pool2d(tf.reshape(x[:4], [1, 2, 2, 1]), 2, 1, "SAME"),
        },
        HOSTILE,
    )


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32])
def test_softmax_beside_nan(dtype):
    """By oneDNN, which this processor and TensorFlow may or may not have for the type, the others are 0."""
    check({"softmax": lambda x: tf.cast(tf.nn.softmax(tf.cast(x, dtype)), tf.float32)}, HOSTILE[:4])


def test_activations_and_their_gradients():
    check(
        {
            "softmax": tf.nn.softmax,
            "softmax of infinity": lambda x: tf.nn.softmax(tf.stack([x[4], x[0], x[1]])),
            "softmax of -infinity": lambda x: tf.nn.softmax(tf.stack([x[3], x[3]])),
            "log_softmax": lambda x: tf.nn.log_softmax(tf.stack([x[3], x[0]])),
            "relu": lambda x: tf.raw_ops.ReluGrad(gradients=x, features=x[::-1]),
            "relu6": lambda x: tf.raw_ops.Relu6Grad(gradients=x, features=x[::-1]),
            "elu": lambda x: tf.raw_ops.EluGrad(gradients=x, outputs=x[::-1]),
            "selu": lambda x: tf.raw_ops.SeluGrad(gradients=x, outputs=x[::-1]),
            "gelu": tf.nn.gelu,
            "erf": tf.math.erf,
            "in_top_k": lambda x: tf.math.in_top_k([2], tf.reshape(tf.stack([x[0], x[2], x[1]]), [1, 3]), 1),
            "in_top_k of a class that there is not": lambda x: tf.math.in_top_k([5], tf.reshape(x[:2], [1, 2]), 2),
            "bucketize": lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 2.0]),
        },
        HOSTILE,
    )


def test_gradients_of_extremes():
    extremes = [0.0, -0.0, 0.3, 1.0, 5.0, LARGEST, -LARGEST, np.inf, -np.inf, np.nan, 1e-30, 1e15, 1e30]
    y, dy = (one.ravel() for one in np.meshgrid(*[np.array(extremes, np.float32)] * 2))
    functions = (tf.raw_ops.SigmoidGrad, tf.raw_ops.TanhGrad, tf.raw_ops.SqrtGrad, tf.raw_ops.RsqrtGrad)
    check({str(index): lambda y, dy, f=f: f(y=y, dy=dy) for index, f in enumerate(functions)}, y, dy)


def test_ops_of_which_xlas_results_differ():
    values = np.array([0.5, np.nan, np.inf, -np.inf, 3.0, 0.25], np.float32)
    check(
        {
            "fake quantisation": tf.quantization.fake_quant_with_min_max_args,
            "of variables": lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -6.0, 6.0),
            "its gradient": lambda x: tf.quantization.fake_quant_with_min_max_args_gradient(x, x),
            "polygamma": lambda x: tf.math.polygamma(x, tf.ones_like(x)),
            "zeta": lambda x: tf.math.zeta(x, tf.ones_like(x)),
            "betainc": lambda x: tf.math.betainc(x, tf.ones_like(x), tf.ones_like(x) * 0.5),
            "hue": lambda x: tf.image.adjust_hue(tf.reshape(x, [1, 2, 3]), 0.2),
            "saturation": lambda x: tf.image.adjust_saturation(tf.reshape(x, [1, 2, 3]), 0.5),
            "contrast": lambda x: tf.image.adjust_contrast(tf.reshape(x, [1, 2, 3]), 2.0),
            "angle": lambda x: tf.math.angle(tf.complex(x, x[::-1])),
            "reciprocal": lambda x: tf.raw_ops.ReciprocalGrad(y=x, dy=x * 0.0),
        },
        values,
    )


IMAGE = np.array([0.5, np.nan, np.inf, -np.inf, 3.0, 0.25] * 4, np.float32).reshape(1, 4, 2, 3)


def parts(x):
    return tf.stack([tf.math.real(x), tf.math.imag(x)])


ALONE = {
    "bilinear": lambda x: tf.image.resize(x, [6, 5]),
    "its gradient": lambda x: tf.raw_ops.ResizeBilinearGrad(grads=x, original_image=x[:, :2]),
    "gradient of nearest": lambda x: tf.raw_ops.ResizeNearestNeighborGrad(grads=x, size=[2, 1]),
    "patches": lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    "hsv": tf.image.rgb_to_hsv,
    "gradient of a pool's gradient": lambda x: tf.raw_ops.MaxPoolGradGrad(
        orig_input=x, orig_output=x[:, ::2, ::2], grad=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
    ),
    "the same in three dimensions": lambda x: tf.raw_ops.MaxPool3DGradGrad(
        orig_input=x[None],
        orig_output=x[None, :, ::2, ::2],
        grad=x[None],
        ksize=[1, 1, 2, 2, 1],
        strides=[1, 1, 2, 2, 1],
        padding="VALID",
    ),
    "igamma": lambda x: tf.math.igamma(x[:, :1], x[:, 1:2]),
    "igammac": lambda x: tf.math.igammac(x, 1.0 / x),
    "cumulative_logsumexp": lambda x: tf.math.cumulative_logsumexp(x, 1),
    "complex exp": lambda x: parts(tf.exp(tf.complex(x, x[:, ::-1]))),
    "complex square root": lambda x: parts(tf.sqrt(tf.complex(x, -1.5))),
    "complex clip": lambda x: parts(
        tf.raw_ops.ClipByValue(t=tf.complex(x, x * 0.0), clip_value_min=-1.0 + 0j, clip_value_max=2.0 + 0j)
    ),
    "fourier transform": lambda x: parts(tf.signal.fft(tf.complex(x, x * 0.0 + 1e38))),
    "factor of a matrix": lambda x: tf.linalg.cholesky(tf.reshape(tf.stack([x[0, 0, 0, 2], 0.0, 0.0, 1.0]), [2, 2])),
    "segment_max": lambda x: tf.math.unsorted_segment_max(x[0, :, 0, 0], [0, 0, 1, 1], 2),
    "segment_min": lambda x: tf.math.unsorted_segment_min(x[0, :, 0, 1], [0, 0, 0, 0], 2),
    "bounds": lambda x: tf.searchsorted(tf.reshape(x, [6, 4]), tf.ones([6, 4])),
    "clip": lambda x: tf.raw_ops.ClipByValue(t=x, clip_value_min=x[0, 0, 0, 1], clip_value_max=1.0),
}


@pytest.mark.parametrize("execution_mode", ["xla"], indirect=True)
def test_ops_that_run_by_kernels_in_every_mode(execution_mode):
    check(ALONE, IMAGE)


def request_of(function, *arguments):
    traced = tf.function(function).get_concrete_function(*map(tf.constant, arguments))
    definition = traced.function_def
    library = {one.signature.name: one for one in traced.graph.as_graph_def().library.function}
    library[definition.signature.name] = definition
    return program.ProgramRequest("program", definition.signature.name, 0, library, [], [], [], [], [])


def test_each_of_them_has_its_program_run_by_kernels():
    def everything(x):
        made = []
        for case, function in enumerate(ALONE.values()):
            with tf.name_scope(f"case_{case}"):
                made.append(function(x))
        return made

    request = request_of(everything, IMAGE)
    reached = reached_functions(request.library, request.function)
    names = kernels_only.describe_kernel_only_ops(request, reached, lambda _, node: node.name)
    found = {name.partition("/")[0] for name in names}
    assert found == {f"case_{case}" for case in range(len(ALONE))}


def test_ftrl_of_a_gradient_that_is_not_finite():
    def trained(device):
        with tf.device(device):
            variables = [tf.Variable([value] * 3) for value in (0.5, 0.1, 0.2)]

            def step(gradient):
                var, accum, linear = (one.handle for one in variables)
                rates = dict(lr=0.1, l1=0.01, l2=0.01, lr_power=-0.5)
                tf.raw_ops.ResourceApplyFtrl(var=var, accum=accum, linear=linear, grad=gradient, **rates)

            tf.function(step, jit_compile=device == IPU)(tf.constant([np.nan, np.inf, 0.5]))
            return np.stack([one.numpy() for one in variables])

    np.testing.assert_allclose(trained(IPU), trained("CPU"), rtol=1e-5)


def test_float16_gradients_are_clipped_at_their_end():
    values = np.array([-np.inf, -65504.0, -2.0, 0.5], np.float16)
    gradients = np.array([0.25, 0.5, 2.0, 1.0], np.float16)
    made = on_ipu(lambda y, dy: tf.raw_ops.SeluGrad(gradients=dy, outputs=y), values, gradients).numpy()
    wide = values.astype(np.float32)
    below = gradients * (wide + 1.0507009873554805 * 1.6732632423543772)
    expected = np.clip(np.where(wide < 0, below, gradients * 1.0507009873554805), -65504, 65504)
    np.testing.assert_allclose(made, expected, rtol=2e-3)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_casts_to_integers_out_of_range(kind):
    with np.errstate(over="ignore"):
        values = HOSTILE[:7].astype(kind)  # few numbers: results of many depend on their places in stock TensorFlow

    def to(name):
        return lambda x: tf.cast(x, name)

    narrow = ("int8", "uint8", "int16", "uint16") if kind == "float32" else ()
    check({name: to(name) for name in (*narrow, "int32", "int64")}, values)
    # Of the numbers that uint32 has, and those that wrap around: what TensorFlow makes of others is undefined.
    check({name: to(name) for name in ("uint32", "uint64")}, np.array([4.0, -2.0, 65000.0], kind))


def test_shifts_by_more_than_there_are_bits():
    arguments, functions = [], {}
    for place, kind in enumerate((np.int8, np.uint8, np.int32, np.uint32)):
        limits = np.iinfo(kind)
        arguments.append(np.array([1, 7, limits.max, limits.min], kind))
        arguments.append(np.array([limits.max, 5, 64, limits.min], kind))
        for shift in (tf.bitwise.left_shift, tf.bitwise.right_shift):
            functions[f"{shift.__name__} {limits}"] = lambda *x, at=2 * place, by=shift: by(x[at], x[at + 1])
    check(functions, *arguments)


@pytest.mark.parametrize("execution_mode", ["xla", "kernels", "auto"], indirect=True)
def test_sorting_of_nan_and_of_zeros(execution_mode):
    x = np.array([4.0, 5.5, np.nan, -np.inf, 0.0, -0.0, 1.0, -0.0], np.float32)
    check(
        {
            "top_k": lambda x: tf.math.top_k(x, 4).values,
            "indices": lambda x: tf.math.top_k(x[3:], 5).indices,
            "sort": tf.sort,
            "argsort": lambda x: tf.argsort(x[3:], stable=True),
        },
        x,
    )


def test_float_arithmetic_is_not_that_of_real_numbers():
    x = np.array([0.1, 1 / 3, 1e20, -3e38, 1e-30], np.float32)
    y = np.array([1e25, 1e-25, 1e30, 2.0, 1e-30], np.float32)

    @tf.function
    def added(x):
        return x + 1e4

    check(
        {
            "(x + c) - c": lambda x, y: (x + 1e4) - 1e4,
            "(x + c) + c": lambda x, y: (x + 3e38) + -3e38,
            "over a call": lambda x, y: added(x) - 1e4,
            "over a reshape": lambda x, y: tf.reshape(x + 1e4, [5, 1]) - 1e4,
            "x * c / c": lambda x, y: (x * 1e30) / 1e30,
            "x / y / y": lambda x, y: x / y / y,
            "x / (y / x)": lambda x, y: x / (y / x),
            "exp * exp": lambda x, y: tf.exp(100.0 * x[:1]) * tf.exp(-100.0 * x[:1]) * tf.exp(1000.0 * x[:1]),
        },
        x,
        y,
    )


def slices(variable):
    for _ in tf.range(3):
        variable[1:].assign((variable * 0.5)[:-1])


def gathered(variable):
    for _ in tf.range(2):
        variable[1:].assign(tf.gather(variable + 1.0, tf.range(7)))


def updated(variable):
    variable.assign(tf.tensor_scatter_nd_update(variable, [[1], [2], [3]], (variable * 0.5)[:3]))


def slice_of_a_tensor(variable):
    read = variable.read_value()
    variable.assign(
        tf.raw_ops.TensorStridedSliceUpdate(
            input=read, begin=[1], end=[0], strides=[1], value=(read * 0.5)[:-1], end_mask=1
        )
    )


def test_updates_of_a_slice_read_the_old_values():
    start, functions = np.arange(1, 9, dtype=np.float32), (slices, gathered, updated, slice_of_a_tensor)
    with tf.device("CPU"):
        expected = [tf.Variable(start) for _ in functions]
    for function, variable in zip(functions, expected, strict=True):
        function(variable)
    with tf.device(IPU):
        variables = [tf.Variable(start) for _ in functions]

        def update():
            for function, variable in zip(functions, variables, strict=True):
                function(variable)

        tf.function(update, jit_compile=True)()
    for function, variable, value in zip(functions, variables, expected, strict=True):
        np.testing.assert_allclose(variable.numpy(), value.numpy(), err_msg=function.__name__)


def test_a_function_reads_what_a_loop_before_it_has_written():
    """In a graph of TensorFlow 1 by control dependencies only: the loop hands on what it was given."""
    v1 = tf.compat.v1

    def program(carried):
        state = v1.get_variable("state", initializer=np.float32([1, 2, 3]), use_resource=True)

        def body(i, carried):
            written = state.assign(state.read_value() * 0.5)
            with tf.control_dependencies([getattr(written, "op", written)]):
                return i + 1, tf.identity(carried)

        _, carried = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), carried))
        with tf.control_dependencies([carried.op]):
            made = tf.function(lambda x: state.read_value() + 0.0 * x, autograph=False)(carried)
        with tf.control_dependencies([made.op]):
            return [made, state.read_value()]

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [3])
        with scopes.ipu_scope(IPU):
            results = ipu_compiler.compile(program, [fed])
        session.run(v1.global_variables_initializer())
        found = session.run(results, {fed: np.ones(3, np.float32)})
    np.testing.assert_array_equal(found, [[0.125, 0.25, 0.375]] * 2)


def grown(first, size=1):
    rows = tf.TensorArray(tf.float32, size=size, dynamic_size=True, element_shape=[])
    for i in tf.range(4):
        rows = rows.write(i, tf.cast(i, tf.float32) + first)
    return rows.stack()


@pytest.mark.parametrize("execution_mode", ["auto"], indirect=True)
def test_a_tensor_array_grows(execution_mode):
    np.testing.assert_array_equal(on_ipu(grown, np.float32(2)), [2, 3, 4, 5])


def summed(rows):
    return tf.reduce_sum(rows.stack() ** 3)


def of_a_range(first, size):
    return tf.reduce_sum(grown(first, size) ** 2)


def of_a_while_loop(first, size):
    rows = tf.TensorArray(tf.float32, size=size, dynamic_size=True, element_shape=[])
    return summed(tf.while_loop(lambda i, _: i < 4, lambda i, rows: (i + 1, rows.write(i, first**2)), (0, rows))[1])


def of_writes(first, size):
    rows = tf.TensorArray(tf.float32, size=size, dynamic_size=True, element_shape=[])
    return summed(rows.write(0, first).write(1, first * 2.0).write(2, first * first))


def test_a_tensor_array_that_grows_has_a_gradient():
    def values(first):
        made = []
        for function, size in itertools.product((of_a_range, of_a_while_loop, of_writes), (0, 1)):
            with tf.GradientTape() as tape:
                tape.watch(first)
                total = function(first, size)
            made += [total, tape.gradient(total, first)]
        return tf.stack(made)

    with tf.device("CPU"):
        expected = tf.function(values)(tf.constant(2.0))
    np.testing.assert_allclose(on_ipu(values, np.float32(2)), expected, rtol=1e-6)


def test_gradients_of_half_max_pooling_without_numbers():
    """A window that begins with NaN gives its gradient to that place, as TensorFlow's own kernel of float16 does."""
    images = np.arange(32, dtype=np.float16).reshape(1, 4, 4, 2)
    images[0, :2, :2, 0] = np.nan
    images[0, 2:, 2:, 1] = -np.inf

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            pooled = tf.nn.max_pool2d(x, 3, 2, "SAME")
        return tape.gradient(pooled, x)

    check({"gradient": gradient}, images)


def test_a_conversion_of_xlas_that_throws():
    """Of patches without channels TensorFlow's conversion throws; its kernel has the result."""
    images = np.zeros([1, 4, 4, 0], np.float32)
    patches = on_ipu(lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), images)
    assert patches.shape == (1, 3, 3, 0)


@pytest.mark.parametrize("op", [tf.raw_ops.Multinomial, tf.raw_ops.StatelessMultinomial])
def test_a_class_of_none_is_not_drawn(op):
    seeds = {"seed": [1, 2]} if op is tf.raw_ops.StatelessMultinomial else {}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"size\[1\]"):
        on_ipu(lambda logits: op(logits=logits, num_samples=3, **seeds), np.zeros([2, 0], np.float32))


FIBONACCI = np.array([1, 1, 0, 0, 0], np.int32)


def computed_place(variable):
    for i in tf.range(2, 5):
        variable[i].assign(variable[i - 1] + variable[i - 2])


def vectorized(variable):
    x = tf.cast(variable, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.zeros([5])
        for _ in tf.range(3):
            total += tf.vectorized_map(lambda row: tf.reduce_sum(row * row), x[:, None] * tf.ones([1, 2]))
    return tape.gradient(total, x)


@pytest.mark.parametrize("function", [computed_place, vectorized])
def test_what_xla_cannot_compile_names_the_scripts_line(function):
    with tf.device(IPU):
        variable = tf.Variable(FIBONACCI)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"test_kernel_results.py:\d+, in {function.__name__}"
        ) as caught:
            tf.function(lambda: function(variable), jit_compile=True)()
    assert "tf.tensor_scatter_nd_update" in str(caught.value)
    assert not {"dummy_file_name", "TF_DUMP_GRAPH_PREFIX"} & set(
        str(caught.value).replace(":", " ").replace("=", " ").split()
    )


@pytest.mark.parametrize("steps", [1, 4])
def test_random_shapes_are_refused_however_many_steps_run(steps):
    def function(x):
        def step(i, total):
            size = tf.random.uniform([], 4, 9, tf.int32)
            return i + 1, total + tf.reduce_sum(tf.ones([size]) * x)

        if steps == 1:
            return step(0, 0.0)[1]
        return tf.while_loop(lambda i, _: i < steps, step, [0, 0.0])[1]

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_kernel_results.py:\d+"):
        on_ipu(function, np.float32(1))


@pytest.mark.parametrize("execution_mode", ["xla", "kernels", "auto"], indirect=True)
def test_nan_in_the_data_does_the_same_however_many_steps_run(execution_mode):
    data = np.ones((32, 2), np.float32)
    data[20, 1] = np.nan
    weights = []
    for steps in (1, 16):
        with tf.device(IPU):
            weight, bias, last = tf.Variable(np.ones((2, 4), np.float32)), tf.Variable(np.zeros(4, np.float32)), 0.0

            def step(rows, weight=weight, bias=bias):
                with tf.GradientTape() as tape:
                    hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(rows, weight), bias))
                    loss = tf.reduce_mean((hidden - 1.0) ** 2)
                for variable, gradient in zip((weight, bias), tape.gradient(loss, [weight, bias]), strict=True):
                    variable.assign_sub(0.01 * tf.clip_by_value(gradient, -1.0, 1.0))
                return loss

            def several(batches, steps=steps, step=step):
                last = 0.0
                for index in tf.range(steps):
                    last = step(batches[index])
                return last

            run = tf.function(several, jit_compile=True)
            for batches in np.split(data.reshape(16, 2, 2), 16 // steps):
                last = run(tf.constant(batches))
        weights.append([weight.numpy(), bias.numpy(), last.numpy()])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert np.isnan(weights[0][2])


def test_stock_functions_keep_xlas_own_options():
    """XLA's maximum of NaN on the CPU, before and after a program of an IPU: the option is the process's."""
    stock = tf.function(lambda x: tf.maximum(x, 1.0), jit_compile=True)
    with tf.device("CPU"):
        before = stock(tf.constant([np.nan, 2.0])).numpy()
        assert np.isnan(on_ipu(lambda x: tf.maximum(x, 1.0), np.array([np.nan, 2.0], np.float32)).numpy()[0])
        after = stock(tf.constant([np.nan, 2.0, 3.0])).numpy()
    np.testing.assert_array_equal(before, after[:2])
