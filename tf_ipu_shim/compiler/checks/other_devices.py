"""Warns about ops placed on a different IPU device than their program's; they run on the program's device."""

from __future__ import annotations

import re

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics, display_name
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.runtime import log

_DEVICE = re.compile(r"/device:IPU:(\d+)", re.IGNORECASE)


def warn_of_other_devices(diagnostics: Diagnostics, request: ProgramRequest) -> None:
    """Warns of ops that a script placed on another IPU device."""
    for name, function in request.library.items():
        for node in function.node_def:
            named = _DEVICE.search(node.device)
            if named is not None and int(named[1]) != request.ordinal:
                log.warning(
                    f"{named[0]} has no effect in {display_name(request.function)}, all of which is compiled for "
                    f"/device:IPU:{request.ordinal}: {diagnostics.describe(name, node)}. Compile the part for "
                    "another device as a separate function, or spread the program over the IPUs of one device with "
                    "ipu.scopes.ipu_shard."
                )
                return
