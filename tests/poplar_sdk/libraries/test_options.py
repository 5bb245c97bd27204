"""Options of library functions: unknown ones are refused, those with an effect have it, none is dropped in silence."""

import re

import numpy
import pytest

from tf_ipu_shim.poplar_sdk import option_tables
from tf_ipu_shim.poplar_sdk.toolchain import sources

pytestmark = pytest.mark.without_tensorflow


def test_unknown_names(cases):
    errors = cases["unknown options"].errors
    assert len(errors) >= 24
    for function, message in errors.items():
        assert message.startswith(f"poplar::invalid_option: Unrecognised option 'noSuchOption' of {function}. "), (
            message
        )


def test_values(cases):
    errors = cases["option values"].errors
    assert errors["partialType=half"].endswith("Did you mean 'partialsType'? If not, leave the option out.")
    assert errors["partialsType=hlaf"] == (
        "poplar::invalid_option: poplin::matMul: option 'partialsType' has the value 'hlaf'; "
        "expected one of: half, float. Pass such a value."
    )
    for value in ("-0.5", "nan", "0.5x", "1.5", "1e999"):
        assert "expected Fraction" in errors[f"availableMemoryProportion={value}"]
    assert "expected one of: true, false" in errors["enableFastReduce=yes"]
    assert "expected Integer" in errors["blockSize=large"]
    assert "tilesPerIPU 17; expected 1 to 1 and 1 to 16" in errors["too many tiles"]
    assert "usedForSlice and usedForUpdate are false" in errors["no use"]
    assert not errors["partialsType=half"]
    for value in ("0", "0.25", "1"):
        assert not errors[f"availableMemoryProportion={value}"]


def test_tiles_of_a_convolution(cases):
    numpy.testing.assert_array_equal(cases["tiles"].outputs["used"], [16, 3])


@pytest.mark.parametrize("name", ["plain", "remap", "padding", "both"])
def test_indices_outside(cases, name):
    """The lookups are 2, which is inside, 5, which is the padding index of 5 rows, and 9."""
    case = cases[f"outside {name}"]
    t, s, out = case.inputs["t"], case.inputs["s"][:, 0], case.outputs
    remap, padded = name in ("remap", "both"), name in ("padding", "both")
    zeros = numpy.zeros(3, numpy.float32)
    rows = [2, None if padded or not remap else 0, 0 if remap else None]
    numpy.testing.assert_array_equal(out["slices"][:, 0], [zeros if row is None else t[row] for row in rows])
    # Without remapping, a gather moves a window inside.
    windows = [t[2], zeros if padded else t[0 if remap else 4], t[0 if remap else 4]]
    numpy.testing.assert_array_equal(out["windows"], windows)
    added, scattered, updated = t.copy(), t.copy(), t.copy()
    for row, values in zip(rows, s, strict=True):
        if row is not None:
            added[row] += values
            scattered[row] = values
    numpy.testing.assert_array_equal(out["added"], added)
    numpy.testing.assert_array_equal(out["scattered"], scattered)
    numpy.testing.assert_array_equal(out["last"][0], zeros if padded else t[0])
    if not padded:
        updated[0] = s[0]
    numpy.testing.assert_array_equal(out["updated"], updated)


def test_indices_are_validated(cases):
    errors = cases["validated"].errors
    assert "index 1 is 5; expected at most 4" in errors["plan"]
    assert "index 1 is 6; expected at most 4" in errors["option"]
    assert not any(errors[name] for name in ("inside", "not validated", "padding", "remapped"))


def test_no_function_drops_its_options():
    unread = []
    for source in sorted(sources.SOURCE_DIRECTORY.glob("pop*/**/*.cc")):
        text = source.read_text()
        unread += [f"{source.name}: {found}" for found in re.findall(r"OptionFlags &?(?:/\*\w*\*/)?\s*[,)]", text)]
    assert not unread


def test_each_header_with_options_has_a_table():
    listed = " ".join(table.functions for table in option_tables.read().values())
    headers = [
        f"{header.parent.name}/{header.name}"
        for header in sorted(sources.INCLUDE_DIRECTORY.glob("pop[lnors]*/*.hpp"))
        if header.parent.name != "poplar" and re.search(r"OptionFlags &\w|OptionFlags options", header.read_text())
    ]
    unlisted = [header for header in headers if header not in listed]
    assert len(headers) >= 18
    # Options of a callback; functions that take different options.
    assert unlisted == ["poplin/Norms.hpp", "popops/DynamicSlice.hpp", "popsparse/MatMul.hpp"]
    assert "popops::multiSlice" in listed
    assert "popsparse::static_::sparseDenseMatMul" in listed


def test_tables_have_each_name_once():
    for table in option_tables.read().values():
        names = [option.name for option in table.options]
        assert len(names) == len(set(names))
