"""Scopes of another IPU device within a program: as with `jit_compile=True`, all of it runs on the program's own."""

from __future__ import annotations

import re

from tf_ipu_shim.lowering.diagnostics import Diagnostics, shown_name
from tf_ipu_shim.lowering.functions import Functions
from tf_ipu_shim.runtime import log

_DEVICE = re.compile(r"/device:IPU:(\d+)", re.IGNORECASE)


def tell(diagnostics: Diagnostics, functions: Functions, ordinal: int) -> None:
    """Warns of ops that a script put on another IPU device than the one that runs the program.

    Args:
        diagnostics: finds the ops' source lines.
        functions: the program.
        ordinal: of the TensorFlow device that runs it.
    """
    for graph in map(functions.__getitem__, functions.reached()):
        for node in graph.nodes:
            named = _DEVICE.search(node.proto.device)
            if named is not None and int(named[1]) != ordinal:
                log.warning(
                    f"{named[0]} has no effect in {shown_name(functions.entry)}, all of which is compiled for "
                    f"/device:IPU:{ordinal}: {diagnostics.describe(graph.name, node)}. Compile what belongs on "
                    "another device as a function of its own, or spread the program over the IPUs of one device with "
                    "ipu.scopes.ipu_shard."
                )
                return
