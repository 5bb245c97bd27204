"""A crash in users' code that ends the process names the function first."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest
from slow_cases import slowly


@pytest.mark.parametrize(
    ("op_name", "ends", "line"),
    [
        ("BuildCrashes", signal.SIGABRT, "crashed. With TF_IPU_SHIM_CHECK_CODELETS=1"),
        slowly("BuildsNothing", signal.SIGSEGV, "crashed after it returned. It must return a poplar::program::Program"),
    ],
)
def test_a_crash_is_told_before_the_process_ends(op_libraries, op_name, ends, line):
    script = f"""
        from tf_ipu_shim.ipu import custom_ops
        outs = {{"output_types": ["float32"], "output_shapes": [[1]]}}
        library, codelets = {str(op_libraries / "libops5.so")!r}, {str(op_libraries / "codelets.gp")!r}
        custom_ops.precompiled_user_op([[1.0]], library, codelets, outs=outs, op_name={op_name!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.returncode == -ends
    assert f"{op_name} of " in done.stderr and line in done.stderr
