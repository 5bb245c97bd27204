"""Which instructions of XLA's form are one call on the IPU: names of compute sets of small functions."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, scopes
from tf_ipu_shim.poplar.ops import gen_popnn_ops

from tf_ipu_shim.profiling import reader

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
CONTROL = ["__seed/set/setMasterSeed", "setStochasticRounding"]


@pytest.fixture
def names(environment, tmp_path):
    """Gives a function that runs another in a session on the IPU, and tells the names of its compute sets."""
    environment(engine={"autoReport.all": "true", "autoReport.directory": str(tmp_path)})

    def run(function, *shapes, dtype=np.float32):
        options = v1.ConfigProto()
        options.graph_options.rewrite_options.disable_meta_optimizer = True  # the ops as they stand here
        with tf.Graph().as_default(), v1.Session(config=options) as session:
            with tf.device(IPU):
                fed = [v1.placeholder(dtype, shape, name=f"x{number}") for number, shape in enumerate(shapes)]
                result = function(*fed)
            session.run(result, {x: np.ones(x.shape, dtype) for x in fed})
        folder = max(tmp_path.iterdir())
        return [row.name for row in reader.read_profile(folder).compute_sets if row.name not in CONTROL]

    return run


def test_a_product_with_a_number_is_added_in_one_call(names):
    assert names(lambda a, b: tf.add(a, b * 3.0, name="sum"), [8], [8]) == ["sum/scaled-inplace/AddTo"]
    made = names(lambda a, b, c: tf.add(a, b * c, name="sum"), [8], [8], [])
    assert made == ["sum/scaled-inplace-xb-y/AddTo"]  # by a number that only a run knows
    made = names(lambda a, b, c: tf.subtract(a, b * c, name="rest"), [8], [8], [1])
    assert made == ["rest/scaled-inplace-xb-y/AddTo"]


def test_sums_that_are_scaled_into_something_are_one_function(names):
    def function(a, b, c):
        first, second = tf.reduce_sum(b, 1, name="first"), tf.reduce_sum(c, 1, name="second")
        return (a - first * 0.5) + (a - second * 0.25)

    made = names(function, [2], [2, 10], [2, 10])
    assert [name.partition("/")[0] for name in made if "Reduce" in name] == ["first"]


def test_a_product_that_is_used_twice_stays(names):
    def function(a, b):
        product = tf.multiply(b, 3.0, name="product")
        return tf.add(a, product, name="sum"), product

    assert names(function, [8], [8]) == ["product/fusion/Op/Multiply", "sum/add.1/Op/Add"]


def test_a_sum_takes_squares_and_halves_and_gives_a_multiple(names):
    def function(a):
        return tf.reduce_sum(tf.cast(a * a, tf.float32), name="sum") * 3.0

    assert names(function, [8], dtype=np.float16) == ["sum/fusion/ReduceOnTile/InToIntermediateNoExchange/Reduce"]


def test_a_sum_of_halves_is_one_call_and_a_maximum_is_not(names):
    reduced = "ReduceOnTile/InToIntermediateNoExchange/Reduce"
    assert names(lambda a: tf.reduce_sum(a, name="sum"), [8], dtype=np.float16) == [f"sum/reduce.1/{reduced}"]
    made = names(lambda a: tf.reduce_max(tf.cast(a, tf.float32, name="cast"), name="max"), [8], dtype=np.float16)
    assert made == ["cast/convert.1/Cast", f"max/reduce.1/{reduced}"]


def test_a_norm_takes_halves_as_they_are(names):
    def function(x, scale, offset):
        return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, name="norm")[0]

    made = names(function, [2, 4, 4, 8], [8], [8], dtype=np.float16)
    assert [name for name in made if name.startswith("norm")] == ["norm/batch-norm-training/batchNormalise"]


def test_norms_of_one_shape_and_type_are_one_function(names):
    ones = np.ones(2, np.float32)

    def norms(**between):
        def function(x):
            for change in (lambda first: first, *between.values()):
                x = change(x)
                x = v1.nn.fused_batch_norm(x, ones, ones, ones, ones, is_training=False, name="norm")[0]
            return x

        made = names(function, [1, 4, 4, 2])
        return [name for name in made if name.endswith("batchNormalise")]

    first = "norm/batch-norm-inference/batchNormalise"
    second = "norm_1/batch-norm-inference.1/batchNormalise"
    assert norms(same=tf.negative) == [first]
    assert norms(other_shape=lambda x: tf.reshape(x, [1, 2, 8, 2])) == [first, second]
    assert norms(other_type=lambda x: tf.cast(x, tf.float16)) == [first, second]


def test_a_convolution_tells_its_strides(names):
    made = names(lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 2, 4]), [1, 2, 2, 1], "VALID", name="conv"), [1, 7, 7, 2])
    assert made[0] == "conv/convolution/Conv_3x3_stride2x2/Convolve"


def test_a_sum_of_other_products_does_not(names):
    made = names(lambda a, b: tf.reduce_sum(tf.multiply(a, b, name="product"), name="sum"), [8], [8])
    assert made == ["product/multiply.1/Op/Multiply", "sum/reduce.1/ReduceOnTile/InToIntermediateNoExchange/Reduce"]


def test_a_maximum_with_zero_is_a_relu(names):
    assert names(lambda a: tf.maximum(a, 0.0, name="kept"), [8]) == ["kept/relu/Nonlinearity"]
    assert names(lambda a: tf.maximum(a, 1.0, name="kept"), [8]) == ["kept/fusion/Op/Maximum"]


def test_an_operand_that_is_broadcast(names):
    assert names(lambda a, b: tf.subtract(a, b, name="rest"), [4, 8], [8]) == ["rest/fusion/Op/Subtract"]
    assert names(lambda a, b: tf.subtract(a, b, name="rest"), [4, 8], [4, 8]) == ["rest/subtract.1/Op/Subtract"]


def test_work_on_one_element_is_an_expression_of_its_operands(names):
    def function(a, b, c):
        first = tf.subtract(tf.multiply(a, b, name="product"), c, name="less")
        second = tf.divide(tf.subtract(a, b, name="rest"), c, name="part")
        return tf.maximum(first, second, name="larger")

    assert sorted(names(function, [8], [8], [])) == [
        "larger/maximum.1/Op/Maximum",
        "less/subtract.1/expression/Op/Multiply",
        "less/subtract.1/expression/Op/Subtract",
        "part/divide.1/expression/Op/Divide",
        "part/divide.1/expression/Op/Subtract",
    ]
    # A product with a number, and a quotient that the compiler makes one of, are none.
    made = names(lambda a, b: tf.multiply(tf.add(a, b, name="sum"), 2.5, name="product"), [8], [8])
    assert made == ["sum/add.1/Op/Add", "product/fusion/Op/Multiply"]


def test_what_is_used_twice_or_is_a_call_is_in_no_expression(names):
    def twice(a, b):
        taken = tf.add(a, b, name="sum")
        return taken, tf.multiply(taken, 2.5, name="product")

    assert sorted(names(twice, [8], [8])) == ["product/fusion/Op/Multiply", "sum/add.1/Op/Add"]
    made = names(lambda a: tf.add(tf.nn.relu(a, name="kept"), 1.0, name="sum"), [8])
    assert made == ["kept/relu/Nonlinearity", "sum/fusion/Op/Add"]
    made = names(lambda a: tf.add(tf.sin(a, name="turned"), 1.5, name="sum"), [8])
    assert made == ["turned/sine.1/Op/Sin", "sum/fusion/Op/Add"]
    # What one number of each row is added to is none: the rows have numbers of their own.
    made = names(lambda a, b, c: tf.add(tf.multiply(a, b, name="product"), c, name="sum"), [4, 8], [4, 8], [8])
    assert made == ["product/multiply.1/Op/Multiply", "sum/fusion/Op/Add"]


@pytest.mark.parametrize("side", [1, 8, 9])
def test_a_chain_of_few_elements_is_one_vertex(names, side):
    """Graphcore's T62382_hlo.h has 14 expressions of up to 8 elements, and chains of 10 that are none."""

    def function(a, b, c):
        left = tf.multiply(tf.add(a, b, name="sum"), c, name="left")
        right = tf.sin(tf.subtract(a, tf.multiply(b, c, name="product"), name="rest"), name="right")
        return left, right

    made = names(function, [side], [side], [side])
    if side > 8:
        below = [name.rpartition("/")[2] for name in made]
        assert sorted(below) == ["Add", "Multiply", "Multiply", "Sin", "Subtract"]
    else:
        assert sorted(made) == ["left/multiply.1/expression", "right/sine.1/expression"]


def test_a_result_of_an_expression_has_one_consumer(names):
    def function(a, b, c):
        kept = tf.multiply(tf.add(a, b, name="sum"), c, name="kept")
        return tf.sin(kept, name="one"), tf.cos(kept, name="other")

    assert len(names(function, [8], [8], [8])) == 4
    # The only result of a program is in none: two ops are left, one by one.
    assert len(names(lambda a, b, c: tf.sin(tf.add(a, b) * c), [8], [8], [8])) == 2
    assert len(names(lambda a, b: tf.sin(tf.add(a, b)), [8], [8])) == 2


def test_an_expression_of_many_squares_ends(names):
    """Each op reads its operand twice: its operands are found once."""

    def function(a):
        taken = a
        for _ in range(60):
            taken = tf.multiply(taken, taken, name="square")
        return taken, tf.sin(a, name="other")

    assert len(names(function, [2])) == 2


def test_before_sdk_2_2_there_are_no_expressions(names, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    made = names(lambda a, b, c: (tf.divide(tf.subtract(a, b), c, name="part"), a), [8], [8], [])
    assert made[-1] == "part/fusion/Op/Divide"


def test_an_error_function_is_one_call(names):
    """XLA has a polynomial of about twenty steps for it, in float32."""
    assert names(lambda a: tf.math.erf(a, name="bent"), [8]) == ["bent/erf.1/Op/Erf"]
    made = names(lambda a: tf.math.erf(a, name="bent"), [8], dtype=np.float16)
    assert made == ["bent/erf.1/Op/Erf"]


ROOT = 2.0**0.5
GELUS = [
    lambda a: 0.5 * a * (1.0 + tf.math.erf(a / tf.cast(ROOT, a.dtype))),
    lambda a: a * ((tf.math.erf(a * tf.cast(1 / ROOT, a.dtype)) + 1.0) * 0.5),
    lambda a: (1.0 + tf.math.erf(tf.cast(1 / ROOT, a.dtype) * a)) * a * 0.5,
    lambda a: tf.nn.gelu(a, approximate=False),
]


@pytest.mark.parametrize("gelu", GELUS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gelu_by_the_error_function_is_one_call(names, gelu, dtype):
    """As `gelu_erf_test` of Graphcore's releases has it."""
    (made,) = names(lambda a: tf.identity(gelu(a)), [8], dtype=dtype)
    assert made.endswith("/gelu-erf/Op/GeluErf")


def test_what_is_almost_a_gelu_is_none(names):
    def of_another(a, b):
        return 0.5 * b * (1.0 + tf.math.erf(a / ROOT))

    def used_twice(a):
        shifted = 1.0 + tf.math.erf(a / ROOT)
        return 0.5 * a * shifted, shifted

    others = [
        lambda a: 0.25 * a * (1.0 + tf.math.erf(a / ROOT)),
        lambda a: 0.5 * a * (1.5 + tf.math.erf(a / ROOT)),
        lambda a: 0.5 * a * (1.0 + tf.math.erf(a / 1.5)),
        lambda a: 0.5 * a * (1.0 + tf.math.tanh(a / ROOT)),
        lambda a: 0.5 * a * (1.0 + tf.math.erf(ROOT / a)),
        used_twice,
    ]
    assert not [name for function in others for name in names(function, [8]) if "Gelu" in name]
    assert not [name for name in names(of_another, [8], [8]) if "Gelu" in name]


def test_a_mean_is_a_sum_that_is_scaled(names):
    made = names(lambda a: tf.reduce_mean(a, 1, name="mean"), [2, 64], dtype=np.float16)
    assert [name for name in made if "Multiply" in name or "Divide" in name] == []
    assert made[0].startswith("mean/fusion/Reduce") and made[-1] == "mean/convert.1/Cast"
    made = names(lambda a: tf.reduce_mean(a, name="mean"), [64])
    assert made[-1].startswith("mean/multiply")  # of one number: there is nothing to broadcast


def test_sdk_2_4_scales_a_mean_after_the_sum(names, monkeypatch):
    """As `casts_elimination_test` of Graphcore's releases has it."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    made = names(lambda a: tf.reduce_mean(a, 1, name="mean"), [2, 64], dtype=np.float16)
    assert made[0].startswith("mean/fusion/Reduce") and made[-2:] == [
        "mean/fusion.1/Op/Multiply",
        "mean/convert.1/Cast",
    ]


def test_convolutions_of_other_shapes_are_other_functions(names):
    def function(x, kernel):
        first = tf.nn.conv2d(x, kernel, 1, "SAME", name="first")
        second = tf.nn.conv2d(first, kernel, 1, "SAME", name="second")
        return tf.nn.conv2d(tf.reshape(second, [1, 2, 8, 2]), kernel, 1, "SAME", name="third")

    made = names(function, [1, 4, 4, 2], [1, 1, 2, 2])
    assert [name for name in made if name.endswith("Convolve")] == [
        "first/convolution/Conv_1x1/Convolve",
        "third/convolution.1/Conv_1x1/Convolve",
    ]


def test_a_scalar_product_is_multiplied_before_the_broadcast(names):
    for tensor in (lambda: tf.fill([8], 3.0), lambda: tf.constant([3.0] * 8)):
        made = names(lambda a, b, tensor=tensor: tf.subtract(a, tensor() * b, name="rest"), [8], [])
        assert [name for name in made if name.startswith("rest")] == ["rest/fusion/Op/Subtract"]
        assert sum("multiply" in name for name in made) == 1 and len(made) == 2
    made = names(lambda a, b: tf.subtract(a, tf.range(8.0) * b, name="rest"), [8], [])
    assert made == ["rest/scaled-inplace-xb-y/AddTo"]


def test_an_operand_with_fewer_axes_is_broadcast(names):
    assert names(lambda a, b: tf.add(a, b, name="sum"), [1, 1, 8], [8]) == ["sum/fusion/Op/Add"]
    assert names(lambda a, b: tf.add(a, b, name="sum"), [1, 1, 8], [1, 1, 8]) == ["sum/add.1/Op/Add"]


def test_what_changes_nothing_is_left_out(names):
    def function(a):
        kept = tf.math.divide_no_nan(tf.subtract(tf.multiply(tf.add(a, 0.0), 1.0), 0.0), tf.ones([8]))
        return tf.negative(kept, name="turned")

    assert names(function, [8]) == ["turned/negate/Op/Negate"]


def test_a_division_by_what_is_known_is_a_product(names):
    assert names(lambda a: tf.divide(a, 4.0, name="part"), [8]) == ["part/fusion/Op/Multiply"]


def test_random_numbers_are_drawn_where_they_are_wanted(names):
    assert names(lambda: tf.random.uniform([8], 1.0, 3.0, name="u")) == ["u/RandomUniform/fusion/uniform"]
    assert names(lambda: tf.random.truncated_normal([8], 1.0, 3.0, name="t")) == [
        "t/TruncatedNormal/truncated-normal/truncatedNormal",
        "t/scaled-inplace/AddTo",
    ]


def test_a_convolution_in_an_update_is_part_of_it(names):
    """The gradient of a kernel, times the rate, is added to the kernel while it is computed."""

    def function(x, kernel, rate):
        y = tf.nn.conv2d(x, kernel, 1, "VALID", name="conv")
        (gradient,) = tf.gradients(y, kernel)
        return tf.subtract(kernel, gradient * rate, name="update")

    made = names(function, [1, 6, 6, 2], [3, 3, 2, 4], [])
    gradient = "gradients/conv_grad/Conv2DBackpropFilter/fusion"
    assert [name for name in made if "update" in name] == []
    assert [name for name in made if name.startswith(gradient)][0].endswith("/Conv_4x4/Convolve")
    assert made[-1].startswith(gradient) and made[-1].endswith("/AddTo")


def repeated(start, body):
    """A loop of four iterations over a counter and what the function is given."""

    def function(*fed):
        return v1.while_loop(lambda i, *_: i < 4, lambda i, *x: (i + 1, *body(i, *x)), (0, *start(*fed)))[1:]

    return function


@pytest.fixture
def compiled_names(environment, tmp_path):
    """As `names`, of a function that is compiled as one program."""
    environment(engine={"autoReport.all": "true", "autoReport.directory": str(tmp_path)})

    def run(function, *shapes):
        with tf.Graph().as_default(), v1.Session() as session:
            fed = [v1.placeholder(tf.float32, shape, name=f"x{number}") for number, shape in enumerate(shapes)]
            with scopes.ipu_scope(IPU):
                result = ipu_compiler.compile(function, fed)
            session.run(result, {x: np.ones(x.shape) for x in fed})
        folder = max(tmp_path.iterdir())
        return [row.name for row in reader.read_profile(folder).compute_sets if row.name not in CONTROL]

    return run


def test_a_counted_loop_has_no_counter_of_its_own(compiled_names):
    made = compiled_names(repeated(lambda x: [x], lambda i, x: [tf.sin(x, name="turned")]), [8])
    assert made == ["turned/sine.1/Op/Sin"]
    # What takes the counter has it counted.
    made = compiled_names(repeated(lambda x: [x], lambda i, x: [tf.sin(x) * tf.cast(i, tf.float32)]), [8])
    assert any("Op/Add" in name for name in made)


def test_what_a_loop_writes_to_has_memory_of_its_own(compiled_names):
    def copies(start, body):
        return sum(name.startswith("Copy_") for name in compiled_names(repeated(start, body), [8]))

    def both(i, x, y):
        return tf.sin(x), tf.cos(y)

    assert copies(lambda x: [x, x], both) == 1  # one of the two can be where x is
    assert copies(lambda x: [x, x + 1.5], both) == 0
    assert copies(lambda x: [x, tf.zeros([8])], both) == 1
    assert copies(lambda x: [x, tf.zeros([8])], lambda i, x, y: (tf.sin(x) + y, y)) == 0  # nothing writes to it


def test_numbers_of_convolutions_in_a_program_that_trains(names):
    """As `conv_graph_caching_test` of Graphcore's has them: gradients of convolutions are numbered before the others.

    An update of a kernel has one number, for the convolution and for what adds its result.
    """

    def function(x, *kernels):
        y = x
        for number, kernel in enumerate(kernels):
            y = tf.nn.conv2d(y, kernel, 1, "SAME", name=f"conv{number}")
        gradients = tf.gradients(tf.reduce_sum(y, name="loss"), kernels)
        return [y, *(tf.subtract(one, gradient * 0.5) for one, gradient in zip(kernels, gradients))]

    made = names(function, [1, 4, 4, 2], [3, 3, 2, 2], [1, 1, 2, 2])
    assert "gradients/conv1_grad/Conv2DBackpropInput/convolution/Conv_1x1/Convolve" in made
    assert any(re.match(r"conv0/convolution\.\d+/Conv_3x3/Convolve$", name) for name in made)
    updates = [name.split("/")[3:] for name in made if "conv0_grad/Conv2DBackpropFilter" in name]
    assert updates[0][0] != "fusion" and {name for name, *_ in updates} == {updates[0][0]}
    assert updates[-1][-1] == "AddTo"
    assert names(lambda x, k: tf.nn.conv2d(x, k, 1, "VALID", name="conv"), [1, 4, 4, 2], [1, 1, 2, 2]) == [
        "conv/convolution/Conv_1x1/Convolve"
    ]


@pytest.mark.parametrize(("steps", "functions"), [(3, 1), (6, 2)])
def test_equal_lstms_are_one_function_with_poplibs_names(names, steps, functions):
    """PopLibs' `Lstm.cpp` calls the product with the output gate `OutputGate`, both of its gradients `MulOGate`."""

    def function(*fed):
        how = {"activation": "tanh", "recurrent_activation": "sigmoid", "num_channels": 4, "is_training": True}
        state = tf.zeros([1, 4])
        given = [
            gen_popnn_ops.popnn_lstm_layer(x, state, state, tf.ones([3 + 4, 4 * 4]), tf.zeros([4, 4]), **how).output
            for x in fed
        ]
        return tf.gradients(given, fed)

    made = names(function, [3, 1, 3], [steps, 1, 3])
    for call in ("OutputGate", "MulOGate"):
        assert sum(name.endswith(f"/{call}/Op/Multiply") for name in made) == functions


def test_equal_group_norms_are_one_function_with_its_names(names):
    """Graphcore's op is one instruction, `group-norm-training`, and its gradient another."""

    def function(x, kernel, *scales):
        for _ in range(2):
            x = tf.nn.conv2d(x, kernel, 1, "VALID", name="conv")
            x = gen_popnn_ops.popnn_group_norm_training(x, *scales, "NHWC", 0.1, 2, name="norm").output
        return [x, *tf.gradients(tf.reduce_sum(x**3), [kernel, *scales])]

    made = [name for name in names(function, [1, 4, 4, 2], [1, 1, 2, 2], [2], [2]) if "norm" in name]
    parts = {"/".join(name.split("/")[:3]) for name in made if name.startswith("norm/")}
    assert parts == {f"norm/group-norm-training/{part}" for part in ("Norm", "iStdDev", "Whiten")}
    gradients = {"/".join(name.split("/")[:4]) for name in made if not name.startswith("norm/")}
    grad = "gradients/norm_1_grad/PopnnGroupNormGrad/group-norm-grad"
    assert gradients <= {f"{grad}/{part}".rsplit("/", 1)[0] for part in ("Whiten", "Gradients", "ParamGradients")}
    assert gradients


def test_other_group_norms_have_a_number_of_their_own(names):
    def function(x):
        norms = [
            gen_popnn_ops.popnn_group_norm_statistics(x, "NHWC", 0.1, groups, name=f"of_{groups}") for groups in (1, 2)
        ]
        return [part for norm in norms for part in norm]

    made = {"/".join(name.split("/")[:3]) for name in names(function, [1, 4, 4, 2])}
    parts = ("Norm", "iStdDev")
    assert made == {
        *(f"of_1/group-norm-statistics/{part}" for part in parts),
        *(f"of_2/group-norm-statistics.1/{part}" for part in parts),
    }


@pytest.mark.parametrize("release", ["2.5", "2.6"])
def test_which_first_instructions_have_a_number(names, monkeypatch, release):
    """As `norm_graph_caching_test` and `conv_graph_caching_test` of Graphcore's releases have them."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)

    def function(x, kernel, scale):
        for _ in range(2):
            x = tf.nn.conv2d(x, kernel, 1, "SAME", name="conv")
            x = tf.compat.v1.nn.fused_batch_norm(x, scale, scale, name="norm")[0]
        return [x, *tf.gradients(x, kernel)]

    made = {part for name in names(function, [1, 4, 4, 2], [3, 3, 2, 2], [2]) for part in name.split("/")}
    plain = {"batch-norm-training", "batch-norm-grad", "weights-transpose-chans-flip-x-y"}
    numbered = {name for name in plain if f"{name}.1" in made}
    assert numbered | made >= plain
    added = {"weights-transpose-chans-flip-x-y"}
    assert numbered == (plain - added if release == "2.5" else added)
