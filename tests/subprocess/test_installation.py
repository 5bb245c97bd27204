"""What pip installs from a wheel and from a checkout, in an empty virtual environment."""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

import pytest

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
    for pattern in ("plugin/csrc/*.cc", "plugin/csrc/*.h", "names/*.txt"):
        in_checkout = sorted(path.name for path in (ROOT / "tf_ipu_shim").glob(pattern))
        assert sorted(path.name for path in package.glob(pattern)) == in_checkout != []
    assert (environment.python.parent / "tf-ipu").exists()

    # An unchanged script under plain python, with the TensorFlow of the environment that runs the tests.
    script = python.script("from tensorflow.python import ipu\nprint(ipu.__name__, ipu.__file__)\n")
    found = python.succeeds(
        script, executable=environment.python, environment={"PYTHONPATH": sysconfig.get_path("purelib")}
    )
    assert found.split() == ["tf_ipu_shim.api.ipu", str(package / "api" / "ipu" / "__init__.py")]

    pip("--python", environment.python, "uninstall", "--yes", "tf_ipu_shim")
    assert list(environment.packages.glob("tf_ipu*")) == []


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
