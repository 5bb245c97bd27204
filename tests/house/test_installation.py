"""What pip installs from a wheel and from a checkout, in an empty virtual environment."""

import base64
import hashlib
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

pytest.importorskip("setuptools", reason="builds a wheel without fetching setuptools")
pytest.importorskip("wheel", reason="builds a wheel without fetching wheel")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ALONE = {"PYTHONPATH": None}


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy to build from, so that nothing is left in the developer's."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("tf_ipu_shim", "tools"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    (copy / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "requirements.txt", copy / "tests")
    return copy


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheels")
    pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", directory, checkout)
    (path,) = directory.glob("*.whl")
    return path


class Environment:
    def __init__(self, directory):
        venv.create(directory, with_pip=False, symlinks=True)
        self.python = directory / "bin" / "python"
        (self.packages,) = directory.glob("lib/python3*/site-packages")

    def install(self, *what):
        pip("--python", self.python, "install", "--no-deps", "--no-index", *what)


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
    prebuilt = checkout / "tf_ipu_shim" / "plugin" / "prebuilt"
    prebuilt.mkdir()
    (prebuilt / "any.so").write_bytes(b"GLIBC_2.3.4 GLIBC_2.28 GLIBCXX_3.4.21")
    try:
        pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", tmp_path, checkout)
    finally:
        shutil.rmtree(prebuilt)
    (path,) = tmp_path.glob("*.whl")
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


def test_editable_install(python, environment, checkout, tmp_path):
    # pip would ask the backend for this wheel in the empty environment, which has no setuptools.
    hook = "import sys; sys.path.insert(0, 'tools'); import build_backend; build_backend.build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", hook, tmp_path], cwd=checkout, check=True, capture_output=True)
    environment.install(*tmp_path.glob("*.whl"))
    check_start(python, environment)
    found = python.succeeds(
        "-c", "import tf_ipu_shim; print(tf_ipu_shim.__file__)", executable=environment.python, environment=ALONE
    )
    assert pathlib.Path(found.strip()) == checkout / "tf_ipu_shim" / "__init__.py"
