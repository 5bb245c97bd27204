"""Every function that a library's headers declare is in the library, and every name of the list is in the page."""

import pathlib
import subprocess
import textwrap

import cpp_names
import generate_poplibs
import pytest

from tf_ipu_shim.poplar_sdk import toolchain

pytestmark = pytest.mark.without_tensorflow


def exported(library):
    """The names of the functions that a built library defines."""
    path = toolchain.build_libraries() / "lib" / f"lib{library}.so"
    words = ["nm", "-DC", "--defined-only", str(path)]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return {line.split(" ", 2)[2].partition("(")[0] for line in listed.splitlines()}


@pytest.mark.parametrize("library", ["poputil", "popops", "poplin", "popnn", "poprand"])
def test_declared_functions_are_defined(library):
    headers = pathlib.Path(toolchain.__file__).parents[1] / "include" / library
    declared = {
        name.text
        for header in headers.glob("*.hpp")
        for name in cpp_names.declared_names(header.read_text())
        if not name.inline and not name.text.endswith("::fill")  # a template with instances
    }
    missing = declared - exported(library)
    assert declared
    assert not missing


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
    assert "popsparse::dynamic::fullyConnectedFwd" not in there
    assert "popsparse::dynamic::fullyConnectedFwd" in everything["popsparse/FullyConnected.hpp"]
    assert "| `popsparse/FullyConnected.hpp` |" in generate_poplibs.page().partition("## Missing")[2]
