"""In a session's graph an op runs where something that is returned depends on it, in the bodies of loops as elsewhere.

TensorFlow's functional loops run everything with a side effect: the update of a model that is only evaluated, too.
"""

from __future__ import annotations

from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.lowering.functions import Functions


def drop_unneeded(functions: Functions) -> None:
    """Leaves out of marked loops what the values they carry on do not depend on."""
    for name in functions.reached():
        for node in functions[name].nodes:
            if node.op in vocabulary.LOOPS and vocabulary.NEEDED_ATTRIBUTE in node.proto.attr:
                body = functions[node.proto.attr["body"].func.name]
                needed = body.needed_by_results()
                if needed is not body:
                    functions.add(needed)
