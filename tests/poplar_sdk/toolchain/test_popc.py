"""`popc`: vertices of codelets as their table has them, and as they compute."""

import os
import pathlib
import stat
import subprocess
import sys

import numpy as np
import pytest
import vertex_tables

from tf_ipu_shim.poplar_sdk.toolchain import popc, popc_arguments

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

CODELETS = r"""
#include <cmath>
#include <ipu_vector_math>
#include <limits>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#include <print.h>
#include "shared.hpp"

using namespace poplar;
static constexpr auto ONE = VectorLayout::ONE_PTR;

// A declared constructor without a definition, and constant members, as published codelets have them.
template <typename T> class Scale : public Vertex {
public:
  Scale();
  Input<Vector<T, ONE, 8>> in;
  Output<Vector<T>> out;
  Input<T> factor;
  const float offset;
  const int32_t counts[3];
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = in[i] * factor + T(offset) + T(counts[2]);
    return true;
  }
};
template class Scale<float>;
template class Scale<half>;

namespace ns {
enum class Mode { ADD, MULTIPLY };
namespace {
struct Base : public MultiVertex {
  Vector<Input<Vector<half>>, ONE> in;
};
}  // namespace
template <Mode mode, unsigned N, bool flag> struct Rows : public Base {
  Vector<InOut<Vector<half, VectorLayout::SPAN, 4>>> out;
  Input<VectorList<unsigned short, VectorListLayout::DELTANELEMENTS>> lengths;
  Vector<Input<half>> each;
  void compute(unsigned worker) {
    for (unsigned row = worker; row < out.size(); row += numWorkers())
      for (unsigned i = 0; i < lengths[row][0]; ++i)
        out[row][i] = mode == Mode::ADD ? in[row][i] + *each[row] : in[row][i] * each[row] * half(N);
  }
};
template struct Rows<Mode::ADD, 1u, true>;
template struct Rows<Mode::MULTIPLY, 2 + 1, false>;
}  // namespace ns

class Limits : public SupervisorVertexIf<true> {
  Output<Vector<half>> out;
  Vector<int> state;
  float slope = 0.5f;
  __attribute__((target("supervisor"))) bool compute() {
    out[0] = -std::numeric_limits<half>::max();
    out[1] = std::exp(half(1)) + ipu::sigmoid(half(0));
    half2 v = {1, -2};
    out[2] = half2_fmax(v, half2{0, 0})[1];
    out[3] = slope * state[1];
    return out.size() > 4;
  }
public:
  unsigned long getCycleEstimate() const { return 10 + 2 * out.size(); }
};

#ifdef __IPU__
#error "the IPU's branch"
#endif
template <typename T> class NotInstantiated : public Vertex { bool compute() { return true; } };
struct NoVertex : std::true_type { std::string name; };
"""
SHARED = """
#pragma once
#include <poplar/Vertex.hpp>
struct Fill : public poplar::Vertex {
  poplar::Output<poplar::Vector<int>> out;
  bool compute() {
    for (int& value : out) value = VALUE;
    return true;
  }
};
"""
CHECKED = """
#include <poplar/Vertex.hpp>
#include <poplar/detail/checks.hpp>
using namespace poplar;
class Over : public Vertex {
public:
  Output<Vector<long long>> found;
  Vector<Input<Vector<float>>> rows;
  Input<Vector<float, VectorLayout::ONE_PTR>> in;
  const int at;
  bool compute() {
    found[4] = 0;
    try {
      found[4] = at < 0 ? long(rows[1][-at]) : long(in[at]);
    } catch (const detail::OutOfBounds& error) {
      found[0] = static_cast<const char*>(error.field) - reinterpret_cast<const char*>(this);
      found[1] = error.index, found[2] = error.size, found[3] = error.row;
      return false;
    }
    return true;
  }
};
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Two sources with one header in common, with popc's usual flags."""
    folder = tmp_path_factory.mktemp("codelets")
    (folder / "codelets.cpp").write_text(CODELETS)
    (folder / "include").mkdir()
    (folder / "include" / "shared.hpp").write_text(SHARED)
    (folder / "more.cc").write_text(
        '#include "shared.hpp"\nclass More : public poplar::Vertex { void compute() {} };\n'
    )
    (folder / "vertex.S").write_text("#ifdef __IPU__\n  setzi $m0, 1\n#endif\n")
    sources = [str(folder / name) for name in ("codelets.cpp", "more.cc", "vertex.S")]
    flags = ["-O2", "-I", str(folder / "include"), "-DVALUE=7", "--target=ipu2,cpu", "-std=c++11"]
    assert popc.main([*sources, *flags, "-o", str(folder / "codelets.gp")]) == 0
    return vertex_tables.GraphProgram(folder / "codelets.gp")


def test_vertices_are_named_as_poplar_spells_them(program):
    assert sorted(program.vertices()) == [
        "Fill",
        "Limits",
        "More",
        "Scale<float>",
        "Scale<half>",
        "ns::Rows<ns::Mode::ADD,1,true>",
        "ns::Rows<ns::Mode::MULTIPLY,3,false>",
    ]
    assert [entry.workers for name, entry in sorted(program.vertices().items())] == [1, 1, 1, 1, 1, 6, 6]


def test_integers_are_spelled_as_types_of_tensors(tmp_path):
    integers = ["char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int"]
    integers += ["long long", "unsigned long long", "bool"]
    lines = ["#include <poplar/Vertex.hpp>", "#include <cstdint>", "template <typename T, typename I>"]
    lines += ["struct Shift : poplar::Vertex { poplar::InOut<T> x; bool compute() { return true; } };"]
    lines += [f"template class Shift<{integer}, std::int64_t>;" for integer in integers]
    (tmp_path / "shift.cpp").write_text("\n".join(lines))
    assert popc.main([str(tmp_path / "shift.cpp"), "-o", str(tmp_path / "shift.gp")]) == 0
    names = vertex_tables.GraphProgram(tmp_path / "shift.gp").vertices()
    assert set(names) == {f"Shift<{integer},long long>" for integer in integers}


def test_fields_have_kinds_types_and_depths(program):
    assert program.described("Scale<half>") == {
        "in": ("Input", "half", 1),
        "out": ("Output", "half", 1),
        "factor": ("Input", "half", 0),
        "offset": ("Value", "float", 0),
        "counts": ("Value", "int", 1),
    }
    assert program.described("ns::Rows<ns::Mode::ADD,1,true>") == {
        "in": ("Input", "half", 2),
        "out": ("InOut", "half", 2),
        "lengths": ("Input", "unsigned short", 2),
        "each": ("Input", "half", 2),
    }
    assert program.described("Limits")["state"] == ("Value", "int", 1)
    fields = program.fields("Scale<half>")
    assert {name: (field.alignment, field.fixed_size, field.state_bytes) for name, field in fields.items()} == {
        "in": (8, 0, 4),
        "out": (2, 0, 8),
        "factor": (2, 0, 4),
        "offset": (4, 0, 4),
        "counts": (4, 3, 12),
    }
    assert program.fields("ns::Rows<ns::Mode::ADD,1,true>")["each"].fixed_size == 1


@pytest.mark.parametrize(("name", "dtype"), [("float", np.float32), ("half", np.float16)])
def test_template_vertex_computes(program, name, dtype):
    data, out = np.arange(5, dtype=dtype), np.zeros(5, dtype)
    values = {"offset": np.float32([0.25]), "counts": np.int32([1, 2, 100])}
    done, cycles = program.run(f"Scale<{name}>", values, **{"in": data}, out=out, factor=np.array([3], dtype))
    assert (done, cycles) == ([True], None)
    np.testing.assert_array_equal(out, data * dtype(3) + dtype(0.25) + dtype(100))


@pytest.mark.parametrize(
    ("name", "expected"), [("ADD,1,true", lambda row, by: row + by), ("MULTIPLY,3,false", lambda row, by: row * by * 3)]
)
def test_vectors_of_vectors_compute(program, name, expected):
    """Eight rows of different sizes, by six workers."""
    rows = [np.arange(1, size + 1, dtype=np.float16) for size in range(8)]
    out = [np.zeros_like(row) for row in rows]
    lengths = [np.uint16([row.size]) for row in rows]
    each = [np.float16([size]) for size in range(8)]
    vertex = f"ns::Rows<ns::Mode::{name}>"
    done, _ = program.run(vertex, **{"in": rows}, out=out, lengths=lengths, each=each)
    assert done == [True] * 6
    for row, by, found in zip(rows, each, out):
        np.testing.assert_array_equal(found, expected(row, by))


EARLY = r"""
#include <Vertex.hpp>
#include <ipuvectormath>
class Pairs : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<float, poplar::VectorLayout::ONE_PTR, 8>> in;
  poplar::Output<poplar::Vector<float>> out;
  bool compute() {
    const float2* pairs = reinterpret_cast<float2*>(&in[0]);
    for (unsigned i = 0; i < out.size(); ++i) out.data()[i] = pairs[i][0] - in.data()[2 * i + 1];
    return true;
  }
};
"""


def test_codelets_of_early_releases_compile(tmp_path):
    (tmp_path / "early.cpp").write_text(EARLY)
    assert popc.main([str(tmp_path / "early.cpp"), "-o", str(tmp_path / "early.gp")]) == 0
    data, out = np.float32([1, 2, 3, 5, 8, 13]), np.zeros(3, np.float32)
    vertex_tables.GraphProgram(tmp_path / "early.gp").run("Pairs", {}, **{"in": data}, out=out)
    np.testing.assert_array_equal(out, data[::2] - data[1::2])


def test_half_is_a_number_of_the_standard_library(program):
    out = np.zeros(5, np.float16)
    done, cycles = program.run("Limits", out=out, state=np.int32([0, 8]))
    np.testing.assert_array_equal(out[:4], np.float16([-65504, np.exp(np.float16(1)) + np.float16(0.5), 0, 4]))
    assert (done, cycles) == ([True], 20)


def test_a_vertex_of_a_header_is_there_once(program):
    out = np.zeros(3, np.int32)
    program.run("Fill", out=out)
    assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("at", "field", "found"), [(9, "in", [9, 4, -1]), (-3, "rows", [3, 2, 1]), (1, None, None), (-1, None, None)]
)
def test_checked_build_names_field_index_and_size(tmp_path, monkeypatch, at, field, found):
    program = checked_program(tmp_path, monkeypatch)
    result = np.zeros(5, np.int64)
    rows = [np.float32([1]), np.float32([2, 3])]
    done, _ = program.run("Over", {"at": np.int32([at])}, found=result, rows=rows, **{"in": np.float32([5, 6, 7, 8])})
    if field is None:
        assert (done, result[4]) == ([True], {1: 6, -1: 3}[at])
    else:
        assert (done, result[0]) == ([False], program.fields("Over")[field].offset)
        assert result[1:4].tolist() == found


_checked = {}


def checked_program(tmp_path, monkeypatch):
    """Compiled once; the variable decides where no option does."""
    if not _checked:
        monkeypatch.setenv("TF_IPU_SHIM_CHECK_CODELETS", "1")
        (tmp_path / "over.cpp").write_text(CHECKED)
        assert popc.main([str(tmp_path / "over.cpp"), "-o", str(tmp_path / "over.gp")]) == 0
        _checked["program"] = vertex_tables.GraphProgram(tmp_path / "over.gp")
        assert _checked["program"].table.checked
    return _checked["program"]


ERRORS = {
    "syntax": ("bool compute() { return undeclared; }", "codelet.cpp:4:", "undeclared"),
    "unclosed": ("bool compute() { return true; ", "codelet.cpp:4:", "expected"),
    "type": ("Input<Vector<std::string>> in; bool compute() { return true; }", "codelet.cpp:4:", "no tensor has"),
    "size": (
        "Input<Vector<float, VectorLayout::ONE_PTR>> in; bool compute() { return in.size(); }",
        "codelet.cpp:4:",
        "size() needs VectorLayout::SPAN",
    ),
    "bits": ("unsigned a : 3; bool compute() { return true; }", "codelet.cpp:4:", "a is a bit field"),
    "linked": ("bool elsewhere(); bool compute() { return elsewhere(); }", "V::elsewhere", "undefined reference"),
}


@pytest.mark.parametrize(("body", "place", "reason"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_show_the_users_line(tmp_path, monkeypatch, capfd, body, place, reason):
    monkeypatch.chdir(tmp_path)
    lines = ["#include <poplar/Vertex.hpp>", "#include <string>", "using namespace poplar;"]
    source = "\n".join([*lines, f"class V : public Vertex {{ public: {body} }};", ""])
    pathlib.Path("codelet.cpp").write_text(source)
    assert popc.main(["codelet.cpp", "-O0", "-o", "codelet.gp"]) != 0
    shown = capfd.readouterr().err
    assert place in shown and reason in shown
    assert "registration of vertices" not in shown or reason == "no tensor has"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codelet.cpp"]


def test_a_source_without_vertices(tmp_path, capfd):
    (tmp_path / "t.cpp").write_text("#include <poplar/Vertex.hpp>\ntemplate <class T> class A : poplar::Vertex {};\n")
    assert popc.main([str(tmp_path / "t.cpp"), "-O0", "-o", str(tmp_path / "t.gp")]) == 0
    assert "has no vertex" in capfd.readouterr().err
    assert vertex_tables.GraphProgram(tmp_path / "t.gp").vertices() == {}


def test_a_program_goes_into_a_device_as_it_is(tmp_path):
    (tmp_path / "t.cpp").write_text("")
    assert popc.main([str(tmp_path / "t.cpp"), "-O0", "-o", os.devnull]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_assembly_for_ipus_is_refused(tmp_path, capfd):
    (tmp_path / "a.cpp").write_text("")
    (tmp_path / "a.S").write_text("setzi $m0, 1\n")
    assert popc.main([str(tmp_path / "a.cpp"), str(tmp_path / "a.S"), "-o", str(tmp_path / "a.gp")]) == 1
    assert "it is assembly for IPUs" in capfd.readouterr().err


def test_missing_libclang_says_what_to_install(tmp_path, monkeypatch, capfd):
    (tmp_path / "a.cpp").write_text("")
    monkeypatch.setitem(sys.modules, "clang", None)
    assert popc.main([str(tmp_path / "a.cpp"), "-o", str(tmp_path / "a.gp")]) == 1
    assert "pip install 'tf_ipu_shim[codelets]'" in capfd.readouterr().err


def test_missing_compiler_says_what_to_install(tmp_path, monkeypatch, capfd):
    (tmp_path / "a.cpp").write_text("")
    monkeypatch.setenv("CXX", "g++-of-another-age")
    assert popc.main([str(tmp_path / "a.cpp"), "-o", str(tmp_path / "a.gp")]) == 1
    assert "'g++-of-another-age' was not found. Install g++ 12 or newer" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.cpp"], "no output is named"),
        (["-o", "a.gp"], "no source is named"),
        (["a.cpp", "-o"], "option -o has no value"),
        (["b.cpp", "-o", "a.gp"], "there is no such file"),
        (["a.txt", "-o", "a.gp"], "ends in '.txt'"),
        (["a.cpp", "--target", "gpu", "-o", "a.gp"], "target 'gpu' is not known"),
        (["a.cpp", "--checkd", "-o", "a.gp"], "Did you mean --checked?"),
        (["a.cpp", "-S", "-o", "a.gp"], "option -S is not supported"),
    ],
)
def test_command_lines_that_are_refused(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("a.cpp").write_text("")
    assert popc.main(words) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("popc: ") and message in shown


def test_options_reach_the_compiler(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.cpp", "b.C"):
        pathlib.Path(name).write_text("")
    words = [
        "-O3",
        "a.cpp",
        "-I",
        "x",
        "-Iy",
        "-DA=1",
        "-UB",
        "b.C",
        "-std=c++20",
        "-g",
        "-Wall",
        "-oc.gp",
        "--checked",
    ]
    read = popc_arguments.parse(words)
    assert (read.sources, read.output, read.checked) == (["a.cpp", "b.C"], "c.gp", True)
    assert read.preprocessor == ["-I", "x", "-Iy", "-DA=1", "-UB"]
    assert (read.language, read.compiler) == (["-std=c++20"], ["-O2", "-O3", "-g", "-Wall"])


def test_help_is_printed(capsys):
    assert popc.main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: popc [OPTIONS] SOURCE ... -o FILE.gp")


def test_compiler_is_asked_once_a_step(tmp_path):
    """`-v` prints the commands, for who must see what the compiler was asked."""
    (tmp_path / "a.cpp").write_text("")
    code = "import sys; from tf_ipu_shim.poplar_sdk.toolchain import popc; sys.exit(popc.main())"
    words = ["-c", code, "-v", str(tmp_path / "a.cpp"), "-o", str(tmp_path / "a.gp")]
    process = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert process.returncode == 0 and process.stderr.count("g++") == 3


ASSEMBLY = """
#include <poplar/Vertex.hpp>
class Sync : public poplar::Vertex { public: void compute() { asm volatile("%s" ::: %s); } };
"""


@pytest.mark.parametrize(("instruction", "clobbers"), [("runall $m1, $m2, 0", '"memory"'), ("nop", '"$a2:3"')])
def test_assembly_of_ipus_is_refused_by_name(tmp_path, instruction, clobbers):
    done = _compile_alone(tmp_path, ASSEMBLY % (instruction, clobbers))
    assert done.returncode == 1 and "does not have the instructions of IPUs. Put the assembly within" in done.stderr


def test_vector_types_without_a_name_are_refused(tmp_path):
    done = _compile_alone(tmp_path, "void f(int x __attribute__((ext_vector_type(2)))) {}")
    assert done.returncode == 1 and "it uses ext_vector_type within a declaration; expected a type" in done.stderr


def _compile_alone(folder, text):
    (folder / "alone.cpp").write_text(text)
    words = ["-m", "tf_ipu_shim.poplar_sdk.toolchain.popc", str(folder / "alone.cpp"), "-o", str(folder / "alone.gp")]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True)
