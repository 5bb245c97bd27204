"""The build of the Poplar libraries: once, in a place of the user's own, and found by Makefiles."""

import pathlib
import shutil
import subprocess

import pytest

from tf_ipu_shim import errors
from tf_ipu_shim.plugin import cache
from tf_ipu_shim.poplar_sdk.toolchain import build, build_on_demand, environment, option_headers, sources

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

MAIN = """
#include <popops/answer.hpp>
#include <iostream>
int main() { std::cout << popops::answer() << std::endl; }
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Sources of two libraries in place of ours, and the cache that they are built into."""
    root = tmp_path_factory.mktemp("poplar")
    files = {
        "include/poplar/base.hpp": "#pragma once\nnamespace poplar { int base(); }\n",
        "include/popops/answer.hpp": "#pragma once\n#include <optional>\n#include <string>\n"
        "namespace popops { int answer(const std::string& = {}); int missing(); std::optional<int> other(); }\n",
        "csrc/poplar/base.cc": "#include <poplar/base.hpp>\nint poplar::base() { return 40; }\n",
        "csrc/popops/answer.cc": "#include <poplar/base.hpp>\n#include <popops/answer.hpp>\n"
        "int popops::answer(const std::string&) { return poplar::base() + 2; }\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, root)
        prefix = build.ensure_built(root / "cache")
    return root, prefix


def use(patch, root):
    patch.setattr(sources, "INCLUDE_DIRECTORY", root / "include")
    patch.setattr(sources, "SOURCE_DIRECTORY", root / "csrc")
    patch.setattr(sources, "ROOT", root)
    patch.setattr(sources, "all_files", lambda: sorted([*root.glob("include/*/*"), *root.glob("csrc/*/*")]))


@pytest.fixture
def built(small, monkeypatch):
    use(monkeypatch, small[0])
    return small[1]


def runs_nothing(monkeypatch):
    monkeypatch.setattr(build.compiler, "run_command", lambda *words: pytest.fail(f"{words}"))


def test_built_libraries_are_used_again(built, monkeypatch):
    runs_nothing(monkeypatch)
    assert build.ensure_built(built.parent) == built
    assert {path.name for path in (built / "lib").glob("*.so")} >= {"libpoplar.so", "libpopops.so", "libpopsparse.so"}


def test_a_damaged_library_is_linked_again(built, monkeypatch):
    library = built / "lib" / "libpopops.so"
    library.write_bytes(library.read_bytes()[:-100])
    labels = []
    run = build.compiler.run_command
    monkeypatch.setattr(build.compiler, "run_command", lambda *words: (labels.append(words[1]), run(*words)))
    assert build.ensure_built(built.parent) == built and cache.is_intact(library)
    assert all(label.startswith("linking") for label in labels)


def test_only_sources_of_a_changed_header_are_compiled(small, tmp_path, monkeypatch):
    root = pathlib.Path(shutil.copytree(small[0], tmp_path / "copy"))
    use(monkeypatch, root)
    with (root / "include" / "popops" / "answer.hpp").open("a") as header:
        header.write("// changed\n")
    labels = []
    run = build.compiler.run_command
    monkeypatch.setattr(build.compiler, "run_command", lambda *words: (labels.append(words[1]), run(*words)))
    build.ensure_built(root / "cache")
    assert [label for label in labels if not label.startswith("linking")] == ["popops/answer.cc"]


def test_a_changed_option_table_changes_its_users(monkeypatch):
    user, other = (sources.SOURCE_DIRECTORY / name for name in ("popops/multi_slice.cc", "poplar/target/types.cc"))
    before = [sources.object_digest([file], "") for file in (user, other)]
    monkeypatch.setattr(option_headers, "headers", lambda: {"poputil/option_tables.hpp": "// changed"})
    after = [sources.object_digest([file], "") for file in (user, other)]
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_a_place_that_others_can_write_is_refused(built, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(errors.PluginError, match=r"no directory to keep the built Poplar runtime in:\n.*others"):
        build.ensure_built(tmp_path)


def test_a_folder_that_others_can_write_is_refused(built, monkeypatch):
    built.chmod(0o770)
    try:
        with pytest.raises(errors.PluginError, match=r"not safe to load libraries from, because .*others"):
            build.ensure_built(built.parent)
    finally:
        built.chmod(0o700)


def test_missing_compiler_names_the_version(small, tmp_path, monkeypatch):
    use(monkeypatch, small[0])
    monkeypatch.setenv("CXX", "no-such-g++")
    with pytest.raises(errors.PluginError, match=r"'no-such-g\+\+' was not found. Install g\+\+ 12 or newer"):
        build.ensure_built(tmp_path)


def test_errors_of_the_compiler_are_shown(small, tmp_path, monkeypatch):
    root = pathlib.Path(shutil.copytree(small[0], tmp_path / "copy"))
    use(monkeypatch, root)
    (root / "csrc" / "popops" / "answer.cc").write_text("int x = undeclared;\n")
    message = r"The Poplar runtime cannot be built: popops/answer.cc failed .*\n.*undeclared"
    with pytest.raises(errors.PluginError, match=message):
        build.ensure_built(root / "cache")


@pytest.fixture
def shell(built, tmp_path, monkeypatch):
    """Runs a command in the environment that `tf-ipu run` sets."""
    for name, value in environment.variables(built).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "main.cpp").write_text(MAIN)

    def run(command, **options):
        return subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, **options)

    return run


# Older Makefiles ask for a standard that Poplar's headers do not compile with, or for strings of older compilers, and
# name PopART without need.
LIBRARIES = "-lpoplar -lpopops -lpoputil -lpopnn -lpoprand -lpopart -lgcl_ct"
FLAGS = "-std=c++11 -D_GLIBCXX_USE_CXX11_ABI=0"
MAKEFILE = f"main: main.cpp\n\tg++ {FLAGS} main.cpp -o main {LIBRARIES}\n"
CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(main CXX)
set(CMAKE_CXX_STANDARD 14)
find_package(poplar REQUIRED)
add_executable(main main.cpp)
target_link_libraries(main popops poplar)
"""


def test_a_makefile_finds_the_libraries(shell, tmp_path):
    (tmp_path / "Makefile").write_text(MAKEFILE)
    process = shell("make -s && ./main")
    assert process.stdout == "42\n", process.stderr


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="there is no pkg-config")
def test_pkg_config_finds_the_libraries(shell):
    process = shell("g++ main.cpp $(pkg-config --cflags --libs popops) -o main && env -u LD_LIBRARY_PATH ./main")
    assert process.stdout == "42\n", process.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake")
def test_cmake_finds_the_package(shell, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    process = shell("cmake -S . -B build > log && cmake --build build >> log && build/main")
    assert process.stdout == "42\n", process.stderr


def test_flags_link_all_libraries_and_report_a_missing_function(shell, built, tmp_path):
    flags = f"{environment.compiler_flags(built)} -fPIC main.cpp {environment.linker_flags(built)}"
    process = shell(f"env -u CPATH -u LIBRARY_PATH -u LD_LIBRARY_PATH sh -c 'g++ {flags} -o main && ./main'")
    assert process.stdout == "42\n", process.stderr
    (tmp_path / "main.cpp").write_text("#include <popops/answer.hpp>\nint f() { return popops::missing(); }\n")
    process = shell(f"g++ -shared {flags} -o libf.so")
    assert "undefined reference to `popops::missing()'" in process.stderr


def test_lines_for_a_shell_keep_what_is_set(built):
    lines = environment.shell_lines(built)
    script = f'PATH=/usr/bin:/bin; unset CPATH; export LIBRARY_PATH=/mine; {lines}\necho "$PATH|$CPATH|$LIBRARY_PATH"'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert shown == f"{built}/bin:/usr/bin:/bin|{built}/include|{built}/lib:/mine"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("make", True),
        ("cd ops; make -j4", True),
        (["/usr/bin/cmake", "--build", "."], True),
        (["bash", "./build.sh"], True),
        ("popc codelet.cpp -o codelet.gp", True),
        (["g++", "-shared", "op.cpp", "-lpoplar"], True),
        (b"g++ op.cpp -lpopops", True),
        (pathlib.Path("/usr/bin/make"), True),
        (["g++", "op.cpp", "-lm"], False),
        (["nproc"], False),
        ("echo remake maker.py", False),
        ([], False),
    ],
)
def test_commands_that_need_the_libraries(command, expected):
    assert build_on_demand.needs_libraries(command) is expected


SCRIPT = """
import os, subprocess, sys
from tf_ipu_shim.poplar_sdk.toolchain import build
build.ensure_built = lambda: print("built", flush=True)
subprocess.run(["true"])
print("before", flush=True)
print(os.path.basename(subprocess.run("command -v popc", shell=True, capture_output=True, text=True).stdout.strip()))
os.system("make --version > made.txt")
subprocess.run(["make", "--version"], capture_output=True)
"""


def test_a_script_builds_when_it_calls_make(python, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    variables = {"TF_IPU_SHIM_PLUGIN_CACHE_DIR": str(tmp_path / "cache")}
    shown = python.succeeds("-m", "tf_ipu_shim.cli", "run", tmp_path / "script.py", environment=variables)
    assert shown.split() == ["before", "built", "popc"]


LOADING = """
import ctypes, importlib.machinery, importlib.util, sys
from tf_ipu_shim.poplar_sdk.toolchain import build
if sys.argv[1] == "import":
    loader = importlib.machinery.ExtensionFileLoader("linked", "./liblinked.so")
    try:
        importlib.util.module_from_spec(importlib.util.spec_from_loader("linked", loader))
    except ImportError as error:
        print(error)
else:
    ctypes.CDLL("./liblinked.so")
    print("loaded")
"""


@pytest.mark.parametrize(
    ("how", "expected"), [("import", "does not define module export function"), ("open", "loaded")]
)
def test_what_is_linked_to_the_libraries_loads(python, how, expected):
    prefix, folder = build.ensure_built(), python.directory
    source = "#include <poplar/Type.hpp>\nbool known() { return poplar::FLOAT.toString().empty(); }\n"
    words = ["g++", "-shared", "-fPIC", "-std=c++17", f"-I{prefix}/include", f"-L{prefix}/lib", "-xc++", "-"]
    subprocess.run([*words, "-o", folder / "liblinked.so", "-lpoplar"], input=source, text=True, check=True)
    script = python.script(LOADING.replace("./", f"{folder}/"))
    assert expected in python.succeeds("-m", "tf_ipu_shim.cli", "run", script, how)


def test_an_event_after_the_module_is_cleared(monkeypatch):
    """Python sets a module's names to None as it ends, and audits on."""
    monkeypatch.setattr(build_on_demand, "_EVENTS", None)
    build_on_demand._audit("open", ("name", "r", 0))
