"""A keyword that a call does not have: the error names the argument that was probably meant."""

import traceback

import pytest

from tf_ipu_shim import ipu
from tf_ipu_shim.names import keywords
from tf_ipu_shim.runtime.errors import error_hints

pytestmark = pytest.mark.one_version


def hint_of(call):
    with pytest.raises(TypeError) as caught:
        call()
    return error_hints.hint(caught.value, str(caught.value))


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (
            lambda: ipu.pipelining_ops.pipeline([], gradient_accumulation_reduction_method="mean"),
            "pipeline() does not have the argument 'gradient_accumulation_reduction_method'. "
            "Did you mean 'reduction_method'?",
        ),
        (lambda: ipu.loops.repeat(2, body=None, infeed=None), "Did you mean 'infeed_queue'?"),
        (lambda: ipu.rnn_ops.PopnnLSTM(8, num_unit=2), "Did you mean 'num_units'?"),
    ],
)
def test_the_nearest_argument_is_named(call, meant):
    assert hint_of(call).startswith("\n") and meant in hint_of(call)


def test_calls_of_the_script_are_not_ours():
    def repeat(times):
        return times

    assert hint_of(lambda: repeat(tims=2)) == ""
    assert hint_of(lambda: dict.fromkeys([1], valu=2)) == ""


def test_a_function_in_a_script_of_the_same_name():
    scope = {}
    exec("def pipeline(depth):\n    return depth\n\ndef call():\n    pipeline(dept=3)\n", scope)
    assert hint_of(scope["call"]) == ""


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("pipeline_depth", ["gradient_accumulation_count", "repeat_count"], ""),
        ("gradient_accumulation_steps", ["gradient_accumulation_count", "inputs"], "gradient_accumulation_count"),
        ("axis", ["x", "axes"], "axes"),
        ("a", ["x", "axes"], ""),
    ],
)
def test_nearest_argument(name, known, nearest):
    assert keywords.nearest(name, known) == nearest


def test_any_keyword_is_taken():
    assert keywords.names_of(lambda **options: options) is None
    assert keywords.names_of(traceback.print_exc) == ["limit", "file", "chain"]
