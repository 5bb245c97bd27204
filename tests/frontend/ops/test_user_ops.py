"""A user's own ops: host functions of a shared library, and TensorFlow functions that stand for codelets."""

from __future__ import annotations

import os
import shlex
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import custom_ops, ipu_compiler, loops, scopes

from tf_ipu_shim import errors

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
ONE = {"output_types": [tf.float32], "output_shapes": [[3]]}
SOURCE = """
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>
extern "C" {
int32_t custom_op_api_level = LEVEL;
}
// a * b, and the sum of both as an integer
extern "C" void Callback(const std::vector<const void*>& data, const std::vector<std::uint32_t>& number_of_elements,
                         const std::vector<void*>& outputs, const std::string& attributes, const std::string&) {
  if (attributes == "fail") throw std::runtime_error("on purpose");
  const float* a = static_cast<const float*>(data[0]);
  const float* b = static_cast<const float*>(data[1]);
  const float scale = attributes.empty() ? 1.0f : std::stof(attributes);
  for (std::uint32_t i = 0; i < number_of_elements[0]; ++i) static_cast<float*>(outputs[0])[i] = scale * a[i] * b[i];
  if (outputs.size() < 2) return;
  for (std::uint32_t i = 0; i < number_of_elements[0]; ++i) *static_cast<std::int32_t*>(outputs[1]) += a[i] + b[i];
}
// data: gradient, a, b, a * b
extern "C" void Callback_grad(const std::vector<void*>& data, const std::vector<uint32_t>& number_of_elements,
                              std::vector<void*>& outputs, const std::string& attributes, const std::string&) {
  const float scale = attributes.empty() ? 1.0f : std::stof(attributes);
  for (std::uint32_t i = 0; i < number_of_elements[0]; ++i) {
    const float gradient = static_cast<float*>(data[0])[i] * scale;
    static_cast<float*>(outputs[0])[i] = gradient * static_cast<float*>(data[2])[i];
    if (outputs.size() > 1) static_cast<float*>(outputs[1])[i] = gradient * static_cast<float*>(data[1])[i];
  }
}
"""


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A library of the present API level, and one of a level that there is not."""
    directory = tmp_path_factory.mktemp("libraries")
    (directory / "product.cc").write_text(SOURCE)
    for name, level in (("product", 5), ("foreign", 99)):
        compiler = shlex.split(os.environ.get("CXX", "g++"))
        command = [*compiler, "-shared", "-fPIC", f"-DLEVEL={level}", "product.cc", "-o"]
        subprocess.run([*command, f"lib{name}.so"], cwd=directory, check=True)
    return directory


@pytest.fixture
def registered():
    """Registers emulations that are gone after the test."""
    names = []

    def register(name, *functions):
        names.append(name)
        custom_ops.register_emulation(name, *functions)

    yield register
    for name in names:
        custom_ops.register_emulation(name, None)


def compiled(function, *inputs):
    """What a compiled TensorFlow 1 program gives."""
    with tf.Graph().as_default(), v1.Session() as session:
        given = [v1.placeholder(one.dtype, one.shape) for one in inputs]
        with scopes.ipu_scope(IPU):
            outputs = ipu_compiler.compile(function, given)
        return session.run(outputs, dict(zip(given, inputs, strict=True)))


def both_gradients(function, *inputs):
    """A function's gradients at once and in a compiled program."""
    tensors = [tf.constant(one) for one in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = function(*tensors)
    at_once = tape.gradient(result, tensors)
    with_gradients = [i for i, one in enumerate(at_once) if one is not None]

    def program(*values):
        gradients = v1.gradients(function(*values), list(values))
        assert [i for i, one in enumerate(gradients) if one is not None] == with_gradients
        return [gradients[i] for i in with_gradients]

    in_program = compiled(program, *inputs)
    for i, ours in zip(with_gradients, in_program, strict=True):
        np.testing.assert_array_equal(at_once[i], ours)
    return at_once


A, B = (np.float32([1, -2, 3]) * factor for factor in (1, 4))


def test_host_functions(libraries):
    outs = {"output_types": [tf.float32, tf.int32], "output_shapes": [tf.TensorShape([3]), tf.TensorShape([])]}
    path = str(libraries / "libproduct.so")

    def step(a, b):
        return custom_ops.cpu_user_operation([a, b], path, outs=outs, attributes="0.5")

    product, total = step(A, B)
    assert product.numpy().tolist() == [2, 8, 18] and int(total) == 10
    first, second = compiled(lambda a, b: step(a + 1.0, b), A, B)
    assert first.tolist() == [4, 4, 24] and second == 13

    def loop(a, b):
        return loops.repeat(3, lambda a, b: [custom_ops.cpu_user_operation([a, b], path, outs=ONE)[0], b], [a, b])

    assert compiled(loop, A, B)[0].tolist() == (A * B**3).tolist()


@pytest.mark.parametrize("wanted", [None, [0]])
def test_gradients_of_host_functions(libraries, wanted):
    path = str(libraries / "libproduct.so")

    def product(a, b):
        return custom_ops.cpu_user_operation(
            [a, b], path, outs=ONE, inputs_with_gradients=wanted, gradient_attributes="2"
        )[0]

    to_a, to_b = both_gradients(product, A, B)
    np.testing.assert_array_equal(to_a, 2 * B)
    assert to_b is None if wanted else (to_b.numpy() == 2 * A).all()


@pytest.mark.parametrize(
    "library, options, error, message",
    [
        ("libnowhere.so", {}, tf.errors.NotFoundError, "libnowhere.so"),
        ("libforeign.so", {}, tf.errors.InternalError, "API level of .*libforeign.so is 99"),
        ("libproduct.so", {"op_name": "Nothing"}, tf.errors.NotFoundError, "no such function"),
        ("libproduct.so", {"attributes": "fail"}, tf.errors.InternalError, "threw on purpose"),
        ("libproduct.so", {"attributes": 3}, ValueError, "Expected attributes to be a 'str' type"),
        ("libproduct.so", {"outs": {"output_types": [tf.float32]}}, ValueError, "output_types and output_shapes"),
        (
            "libproduct.so",
            {"outs": {"output_types": [tf.float32], "output_shapes": [[None]]}},
            tf.errors.InvalidArgumentError,
            "every dimension",
        ),
    ],
)
def test_what_host_functions_refuse(libraries, library, options, error, message):
    with pytest.raises(error, match=message):
        custom_ops.cpu_user_operation([A, B], str(libraries / library), **{"outs": ONE, **options})
    if error is not ValueError:
        with pytest.raises(error, match=message):
            compiled(
                lambda a, b: custom_ops.cpu_user_operation(
                    [a, b], str(libraries / library), **{"outs": ONE, **options}
                ),
                A,
                B,
            )


def test_separate_gradients_of_host_functions_are_refused(libraries):
    a = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(a)
        (result,) = custom_ops.cpu_user_operation(
            [a, B], str(libraries / "libproduct.so"), outs=ONE, separate_gradients=True
        )
    with pytest.raises(errors.UnsupportedError, match="Leave separate_gradients out"):
        tape.gradient(result, a)


def test_emulations_run_in_programs_and_have_gradients(registered):
    registered("libproduct.so", lambda a, b: a * b)

    def product(a, b):
        return custom_ops.precompiled_user_op([a, b], "/anywhere/libproduct.so", outs=ONE)[0]

    np.testing.assert_array_equal(product(A, B), A * B)
    np.testing.assert_array_equal(compiled(product, A, B)[0], A * B)
    to_a, to_b = both_gradients(product, A, B)
    np.testing.assert_array_equal(to_a, B)
    np.testing.assert_array_equal(to_b, A)


def test_emulations_with_gradients_and_attributes_of_their_own(registered):
    def scaled(x, indices, attributes):
        return [float(attributes) * x, indices + 1]

    def gradient(gradients, inputs, outputs, attributes):
        assert outputs[0].shape == [3] and inputs[1].dtype == tf.int32
        return [float(attributes) * gradients[0] * inputs[0]]

    registered("libscale.so:Scale", scaled, gradient)
    registered("libscale.so", lambda *inputs: None)
    outs = {"output_types": [tf.float32, tf.int32], "output_shapes": [[3], [3]]}
    indices = np.int32([1, 2, 3])

    def scale(x):
        return custom_ops.precompiled_user_op(
            [x, indices],
            "libscale.so",
            outs=outs,
            op_name="Scale",
            inputs_with_gradients=[0],
            attributes="3",
            gradient_attributes="10",
        )

    first, second = compiled(scale, A)
    np.testing.assert_array_equal(first, 3 * A)
    assert second.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(both_gradients(lambda x: scale(x)[0], A)[0], 10 * A)
    assert custom_ops.precompiled_user_op([A], "libscale.so") == []


def test_what_stands_for_an_op_may_be_any_callable(registered):
    @tf.custom_gradient
    def doubled(x):
        return 2.0 * x, lambda upstream: upstream

    callables = {
        "keywords": (lambda x, **options: float(options.get("attributes", 1)) * x, 3 * A),
        "layer": (tf.keras.layers.Activation("relu"), np.maximum(A, 0)),
        "function": (tf.function(lambda x: 2.0 * x), 2 * A),
        "gradient": (doubled, 2 * A),
        "ufunc": (np.square, A**2),
    }
    for name, (function, expected) in callables.items():
        registered(f"lib{name}.so", function)
        (given,) = custom_ops.precompiled_user_op([A], f"lib{name}.so", outs=ONE, attributes="3")
        np.testing.assert_array_equal(given, expected, name)
    (given,) = custom_ops.precompiled_user_op([A], "libkeywords.so", outs=ONE)
    np.testing.assert_array_equal(given, A)


def test_inputs_without_gradients(registered):
    registered("libproduct.so", lambda a, b: a * b)
    to_a, to_b = both_gradients(
        lambda a, b: custom_ops.precompiled_user_op([a, b], "libproduct.so", outs=ONE, inputs_with_gradients=[1])[0],
        A,
        B,
    )
    assert to_a is None
    np.testing.assert_array_equal(to_b, A)


def test_a_library_that_is_not_there_and_has_no_emulation(registered):
    registered("libother.so", lambda a: a)
    line = r"(?s)the file does not exist.*ipu.custom_ops.register_emulation\('libproduct.so{}', "
    with pytest.raises(tf.errors.NotFoundError, match=line.format("")):
        custom_ops.precompiled_user_op([A], "nowhere/libproduct.so", outs=ONE)
    with pytest.raises(tf.errors.NotFoundError, match=line.format(":Sum")):
        custom_ops.precompiled_user_op([A], "nowhere/libproduct.so", outs=ONE, op_name="Sum")


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda a: [a, a], "returned 2 tensors, and `outs` has 1"),
        (lambda a: tf.cast(a, tf.float16), "float16 of the shape .*float32"),
        (lambda a: a[:2], r"shape \(2,\), and .* shape \(3,\)"),
    ],
)
def test_emulations_that_give_something_else(registered, function, message):
    registered("libsame.so", function)
    with pytest.raises(ValueError, match=message):
        custom_ops.precompiled_user_op([A], "libsame.so", outs=ONE)


def user_op(path, **named):
    return custom_ops.precompiled_user_op([[2.0], [3.0]], path, outs=SHORT, **named)[0].numpy().tolist()


SHORT = {"output_types": [tf.float32], "output_shapes": [[1]]}
TWO = {"add": [5.0], "mul": [6.0]}


@pytest.mark.parametrize("where", ["add/libcustom_op.so", "./add/libcustom_op.so", "absolute", "path", "link"])
def test_two_libraries_of_one_name(registered, tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    for directory in TWO:
        (tmp_path / "real" / directory).mkdir(parents=True)
        (tmp_path / "real" / directory / "libcustom_op.so").write_text(directory)
        (tmp_path / directory).symlink_to(tmp_path / "real" / directory)
    functions = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b}
    for directory, function in functions.items():
        name = where.replace("add", directory)
        path = tmp_path / directory / "libcustom_op.so"
        registered(
            {"absolute": str(path), "path": path, "link": f"real/{directory}/libcustom_op.so"}.get(where, name),
            function,
        )
    for directory, expected in TWO.items():
        assert user_op(os.path.join(os.getcwd(), directory, "libcustom_op.so")) == expected
        assert user_op(f"{directory}/libcustom_op.so") == user_op(tmp_path / directory / "libcustom_op.so") == expected


def test_two_libraries_that_are_not_there(registered):
    registered("add/libcustom_op.so", lambda a, b: a + b)
    registered("mul/libcustom_op.so", lambda a, b: a * b)
    for directory, expected in TWO.items():
        assert user_op(f"/anywhere/{directory}/libcustom_op.so") == expected


def test_a_file_name_stands_for_one_library(registered, tmp_path):
    registered("libcustom_op.so", lambda a, b: a + b)
    assert user_op("add/libcustom_op.so") == user_op(os.path.abspath("add/libcustom_op.so")) == [5.0]
    with pytest.raises(ValueError, match="can only stand for one library. Register each by its path"):
        user_op("mul/libcustom_op.so")
    with pytest.raises(ValueError, match="another function is registered under this file name"):
        custom_ops.register_emulation("libcustom_op.so", lambda a, b: a * b)
    registered("mul/libcustom_op.so:BuildSum", lambda a, b: a * b)
    assert user_op("mul/libcustom_op.so", op_name="BuildSum") == [6.0]
    registered("mul/libcustom_op.so:BuildSum", lambda a, b: a - b)  # a path is that library, so the last one counts
    assert user_op("x/mul/libcustom_op.so", op_name="BuildSum") == [-1.0]


def test_a_statement_that_runs_again_registers_again(registered):
    for factor in (1.0, 2.0):
        registered("libagain.so", lambda a, b, factor=factor: (a + b) * factor)
        assert user_op("libagain.so") == [5.0 * factor]


def test_what_cannot_be_registered(registered):
    for name in ("", "lib/", ":Build", 3):
        with pytest.raises(ValueError, match="expected a library's file name or path"):
            custom_ops.register_emulation(name, lambda a: a)
    with pytest.raises(TypeError, match="has to be a function"):
        custom_ops.register_emulation("libproduct.so", 3)
    with pytest.raises(TypeError, match="expected python_function"):
        custom_ops.register_emulation("libproduct.so", None, lambda *given: given)
    registered("libtwo.so", lambda a: a, lambda gradients, inputs, outputs: [*gradients, None])
    a = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(a)
        (result,) = custom_ops.precompiled_user_op([a], "libtwo.so", outs=ONE)
    with pytest.raises(ValueError, match=r"returned 2 tensors, but 1 inputs"):
        tape.gradient(result, a)
