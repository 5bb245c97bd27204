"""Libraries of users' Poplar ops, compiled once a session."""

import pathlib
import shlex
import subprocess

import pytest

from tf_ipu_shim.poplar_sdk import toolchain

SOURCES = pathlib.Path(__file__).with_name("sources")
LEVELS = (1, 2, 3, 4, 5, 99)


@pytest.fixture(scope="session")
def op_libraries(tmp_path_factory):
    """Libraries of the same ops for each API level, and compiled codelets."""
    directory = tmp_path_factory.mktemp("ops")
    prefix = toolchain.build_libraries()
    flags = f"-std=c++17 -fPIC -I{prefix}/include -L{prefix}/lib"

    def run(command):
        done = subprocess.run(shlex.split(command), cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    run(f"g++ {flags} -O1 -c {SOURCES / 'ops.cc'} -o ops.o")
    run(f"{prefix}/bin/popc {SOURCES / 'codelets.cpp'} -o codelets.gp")
    for level in LEVELS:
        (directory / f"level{level}.cc").write_text(f'extern "C" {{ int custom_op_api_level = {level}; }}\n')
        run(f"g++ {flags} -shared ops.o level{level}.cc -o libops{level}.so -lgcl -lpoplar")
    (directory / "missing.cc").write_text(
        "namespace popops { void notThere(int); }\nvoid f() { popops::notThere(1); }\n"
    )
    run(f"g++ {flags} -shared missing.cc -o libmissing.so")
    (directory / "plain.cc").write_text('extern "C" { int custom_op_api_level = 5; void Build() {} }\n')
    run("g++ -shared -fPIC plain.cc -o libplain.so")
    (directory / "libtext.so").write_text("no library")
    whole = (directory / "libops5.so").read_bytes()
    (directory / "libcut.so").write_bytes(whole[: len(whole) // 2])
    return directory


@pytest.fixture(scope="module")
def op(request, tmp_path_factory):
    """Calls an op of the library that the module names as `OPS`."""
    import user_ops  # other tests run without TensorFlow

    return user_ops.caller(*user_ops.compile_ops(request.module.OPS, tmp_path_factory.mktemp("ops")))


@pytest.fixture(params=["xla", "kernels", "eager"])
def run(request, monkeypatch):
    """Runs a function of TensorFlow on the IPU, in an execution mode."""
    import user_ops  # other tests run without TensorFlow

    if request.param != "eager":
        monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    return user_ops.runner(request.param == "eager")
