"""Every function that a library's headers declare is in the library, and every name of the list is in the page."""

import pathlib
import subprocess
import textwrap

import cpp_names
import declared_functions
import generate_poplibs
import pytest

from tf_ipu_shim.poplar_sdk import toolchain
from tf_ipu_shim.poplar_sdk.toolchain import sources

pytestmark = pytest.mark.without_tensorflow


def test_declared_functions_are_defined():
    include = pathlib.Path(toolchain.__file__).parents[1] / "include"
    headers = [header for header in sorted(include.rglob("*.hpp")) if "detail" not in header.parts]
    declared = declared_functions.declared_functions(headers, include)
    folder = toolchain.build_libraries() / "lib"
    defined = declared_functions.exported([folder / sources.file_name(name) for name in sources.library_names()])
    assert len(declared) > 500
    assert not {name for mangled, name in declared.items() if mangled not in defined}


def test_functions_without_definition_are_found(tmp_path):
    (tmp_path / "a.hpp").write_text(
        "namespace a { int f(int); inline int g() { return 1; }\n"
        "class B { public: B(); void m() const; B(B&&) = default; }; }"
    )
    (tmp_path / "a.cpp").write_text('#include "a.hpp"\nint a::f(int x) { return x; }\na::B::B() {}')
    subprocess.run(["g++", "-shared", "-fPIC", "a.cpp", "-o", "liba.so"], cwd=tmp_path, check=True)
    declared = declared_functions.declared_functions([tmp_path / "a.hpp"], tmp_path)
    defined = declared_functions.exported([tmp_path / "liba.so"])
    assert [name for mangled, name in declared.items() if mangled not in defined] == ["B::m()"]


def test_names_of_macros_and_declarations():
    header = textwrap.dedent("""
    namespace a {
    #define BOTH(name, KIND) \\
      inline int name(int x) { return x; } \\
      int name##InPlace(int x);
    BOTH(f, ADD)
    #undef BOTH
    enum class Kind { ONE };
    template <typename T> std::vector<T> g(const std::function<int(T)> &h = {});
    namespace detail { void hidden(); }
    }
    """)
    found = [(name.text, name.inline) for name in cpp_names.declared_names(header)]
    assert found == [("a::f", True), ("a::fInPlace", False), ("a::Kind", True), ("a::g", False)]


def test_missing_names_have_their_header():
    everything = generate_poplibs.poplibs_names()
    there = {name for names in generate_poplibs.present_names().values() for name in names}
    assert "popops::map" in there
    assert "popnn::rnn::forwardIterate" not in there
    assert "popnn::rnn::forwardIterate" in everything["popnn/Recurrent.hpp"]
    assert "| `popnn/Recurrent.hpp` |" in generate_poplibs.page().partition("## Missing")[2]
