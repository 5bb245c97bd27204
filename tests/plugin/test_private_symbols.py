"""The plugin's check of TensorFlow's private symbols, asked with sizes that this TensorFlow does not have."""

import subprocess

import pytest

from tf_ipu_shim import errors
from tf_ipu_shim.plugin import build, compiler, private_symbols

RETURNS = "return one.size;"


@pytest.fixture(scope="module")
def library():
    return build.ensure_built()


def ask(library, program, tmp_path):
    """Asks a copy of the program whether the plugin fits."""
    source = tmp_path / private_symbols.PROGRAM
    source.write_text(program)
    target = tmp_path / "plugin.so"
    target.symlink_to(library)
    private_symbols.check(compiler.find_compiler(), [source], target, build.TensorFlowBuild.installed().link_flags)


@pytest.mark.no_sanitizer  # a sanitizer's compiler skips the check
@pytest.mark.parametrize("size", [None, 2600, 100])
def test_size_of_launch_kernels(library, tmp_path, size):
    program = (compiler.SOURCE_DIRECTORY / "tf_private" / private_symbols.PROGRAM).read_text()
    assert program.count(RETURNS) == 1
    if size is None:
        ask(library, program, tmp_path)
        return
    with pytest.raises(
        errors.PluginError, match=rf"XlaLocalLaunchBase \(xla_launch\.h\) is {size}; expected more than"
    ):
        ask(library, program.replace(RETURNS, f"return {size};"), tmp_path)


@pytest.mark.no_sanitizer  # a sanitizer's compiler skips the check
def test_a_check_that_does_not_end(library, tmp_path, monkeypatch):
    monkeypatch.setattr(private_symbols, "_SECONDS", 0.1)
    with pytest.raises(errors.PluginError, match="the check does not end within 0.1 s") as refused:
        ask(library, "int main() { for (;;) {} }", tmp_path)
    assert not isinstance(refused.value.__cause__, subprocess.TimeoutExpired)
