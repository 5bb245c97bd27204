"""What pip installs from a wheel and from a checkout, in an empty virtual environment."""

import base64
import hashlib
import pathlib
import platform
import shutil
import sysconfig
import zipfile

import pytest
from checkout import ROOT
from installing import (
    Environment,
    build_editable_wheel,
    build_wheel,
    build_wheel_without_plugin,
    copy_checkout,
    pip,
)

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

pytest.importorskip("setuptools", reason="builds a wheel without fetching setuptools")
pytest.importorskip("wheel", reason="builds a wheel without fetching wheel")

ALONE = {"PYTHONPATH": None}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    return build_wheel_without_plugin(tmp_path_factory.mktemp("wheels"), checkout)


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "environment")


def check_start(python, environment):
    """Plain `python` knows Graphcore's names and has loaded nothing that costs time."""
    code = "import sys; print(*(name for name in sys.modules if name.startswith(('tf_ipu_shim', 'tensorflow'))))"
    loaded = python.succeeds("-c", code, executable=environment.python, environment=ALONE)
    assert loaded.split() == ["tf_ipu_shim.names", "tf_ipu_shim"]
    code = "import ipu_tensorflow_addons.util"
    refused = python("-c", code, executable=environment.python, environment=ALONE)
    assert "MissingModuleError: Graphcore's ipu_tensorflow_addons.util exists in SDK" in refused.stderr


@pytest.mark.slow
def test_wheel(python, environment, wheel):
    environment.install(wheel)
    check_start(python, environment)
    package = environment.packages / "tf_ipu_shim"
    for pattern in ("plugin/csrc/*/*.cc", "plugin/csrc/*/*.h", "names/*.txt"):
        in_checkout = sorted(path.name for path in (ROOT / "tf_ipu_shim").glob(pattern))
        assert sorted(path.name for path in package.glob(pattern)) == in_checkout != []
    assert (environment.python.parent / "tf-ipu").exists()
    stub = (package / "api" / "ipu" / "loops.pyi").read_text()
    assert "from tf_ipu_shim.frontend.control_flow.loops import repeat as repeat\n" in stub
    for folder in ("tensorflow", "tf_ipu_shim_types/tensorflow-stubs"):
        assert (environment.packages / folder / "python" / "ipu" / "config.pyi").exists()

    # An unchanged script under plain python, with the TensorFlow of the environment that runs the tests.
    script = python.script("from tensorflow.python import ipu\nprint(ipu.__name__, ipu.__file__)\n")
    found = python.succeeds(
        script, executable=environment.python, environment={"PYTHONPATH": sysconfig.get_path("purelib")}
    )
    assert found.split() == ["tf_ipu_shim.api.ipu", str(package / "api" / "ipu" / "__init__.py")]

    pip("--python", environment.python, "uninstall", "--yes", "tf_ipu_shim")
    assert [path for name in ("tf_ipu*", "tensorflow*", "keras*") for path in environment.packages.glob(name)] == []


@pytest.mark.slow
def test_wheel_with_a_library(checkout, environment, tmp_path):
    """Tagged for the systems that have what the library asks for; pip installs it, and every file is in its RECORD."""
    checkout = pathlib.Path(shutil.copytree(checkout, tmp_path / "checkout"))
    prebuilt = checkout / "tf_ipu_shim" / "plugin" / "prebuilt"
    prebuilt.mkdir()
    (prebuilt / "any.so").write_bytes(b"GLIBC_2.3.4 GLIBC_2.28 GLIBCXX_3.4.21")
    path = build_wheel(tmp_path, checkout)
    assert path.name.endswith(f"-py3-none-manylinux_2_28_{platform.machine()}.whl")
    environment.install(path)
    assert (environment.packages / "tf_ipu_shim" / "plugin" / "prebuilt" / "any.so").exists()
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
        recorded = {line.split(",")[0]: line.split(",")[1] for line in wheel.read(record).decode().splitlines()}
        assert set(recorded) | {record} == set(wheel.namelist())
        for name, digest in recorded.items():
            if digest:
                found = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                assert digest == f"sha256={found}", name


STAND_IN = """
from tf_ipu_shim.plugin import build
tensorflow = build.TensorFlowBuild("9.9.9", "v9.9.9-0-gabc", ("-std=c++17",), ())
build.TensorFlowBuild.installed = classmethod(lambda cls: tensorflow)
sources = [build.pathlib.Path({source!r})]
build._source_files = lambda named: sources
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # setuptools' and wheel's of each other
@pytest.mark.parametrize(("compiler", "built"), [("g++", 1), ("no-such-compiler", 0)])
def test_wheel_is_compiled_where_tensorflow_is(checkout, tmp_path, monkeypatch, compiler, built):
    """A stand-in for TensorFlow and one source keep it fast; without a compiler the wheel has no library."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import build_backend

    # One folder for each build: setuptools remembers which folders it has made in this process.
    folder = pathlib.Path(shutil.copytree(checkout, tmp_path / "checkout"))
    monkeypatch.setattr(build_backend, "ROOT", folder)
    source = tmp_path / "only.cc"
    source.write_text('extern "C" int answer() { return 42; }\n')
    monkeypatch.setattr(build_backend, "BUILD", STAND_IN.format(source=str(source)) + build_backend.BUILD)
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.chdir(folder)
    name = build_backend.build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        libraries = [file for file in wheel.namelist() if file.endswith(".so")]
        metadata = next(file for file in wheel.namelist() if file.endswith("/WHEEL"))
        assert (f"Tag: py3-none-linux_{platform.machine()}" in wheel.read(metadata).decode()) == bool(built)
    assert len(libraries) == built and all("/ipu-plugin-tf9.9.9-" in library for library in libraries)
    assert name.endswith(f"-linux_{platform.machine()}.whl" if built else "-any.whl")


@pytest.mark.slow
def test_install_compiles_the_plugin(python, environment, checkout, tmp_path):
    environment.install(build_wheel(tmp_path, checkout))
    code = "from tf_ipu_shim.plugin import build; print(build.find_library())"
    found = python.succeeds(
        "-c", code, executable=environment.python, environment={"PYTHONPATH": sysconfig.get_path("purelib"), "PATH": ""}
    )
    assert pathlib.Path(found.strip()).parent == environment.packages / "tf_ipu_shim" / "plugin" / "prebuilt"


@pytest.mark.parametrize(
    ("libraries", "oldest"),
    [
        ([], None),
        ([b"GLIBC_2.2.5"], 17),
        ([b"GLIBC_2.2.5", b"GLIBC_2.34 GLIBCXX_3.4.21"], 34),
        ([b"GLIBC_2.17 GLIBCXX_3.4.30"], 35),
    ],
)
def test_platform_tag(libraries, oldest, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import wheel_tag

    expected = f"manylinux_2_{oldest}_{platform.machine()}" if oldest else ""
    assert wheel_tag.of_libraries(libraries) == expected
    if libraries:
        with pytest.raises(RuntimeError, match=r"GLIBCXX_3\.4\.99, which no known system has"):
            wheel_tag.of_libraries([*libraries, b"GLIBCXX_3.4.99"])


@pytest.mark.slow
def test_editable_install(python, environment, checkout, tmp_path):
    environment.install(build_editable_wheel(tmp_path, checkout))
    check_start(python, environment)
    found = python.succeeds(
        "-c", "import tf_ipu_shim; print(tf_ipu_shim.__file__)", executable=environment.python, environment=ALONE
    )
    assert pathlib.Path(found.strip()) == checkout / "tf_ipu_shim" / "__init__.py"


@pytest.mark.without_tensorflow
def test_options_do_not_load_the_poplar_graph_api(python):
    code = (
        "import sys; from tf_ipu_shim.configuration import environment; print('tf_ipu_shim.poplar_sdk' in sys.modules)"
    )
    assert python.succeeds("-c", code).strip() == "False"
