"""`ipu_tensorflow_addons.saved_model_tool.converter.ipu_compiler_wrapper`: compiles the IPU's nodes as one program."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.frontend.conversion import graph_nodes, ipu_program


class IPUCompilerWrapper(Converter):
    """Compiles the IPU's nodes as one program, if `merge_subgraphs` says so.

    The program is the result of `ipu_compiler.compile`. Names of inputs and outputs stay.

    Args:
        param: an `IpuConversionParams`.

    Raises:
        TypeError: `excluded_nodes` is not a list of regular expressions, or `remove_excluded_nodes` is not a bool.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.ipu_compiler_wrapper.IPUCompilerWrapper`.
    """

    def __init__(self, param: Any) -> None:
        graph_nodes.check_patterns(param.excluded_nodes, "excluded_nodes", TypeError)
        if not isinstance(param.remove_excluded_nodes, bool):
            raise TypeError(
                f"remove_excluded_nodes must be a bool, not {param.remove_excluded_nodes!r}. Pass True or False."
            )
        self._merges = param.merge_subgraphs

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`.

        Raises:
            ValueError: there is no node on the IPU, or the host computes something between two of them.
        """
        return ipu_program.merge_program(graph_def, signature_def) if self._merges else (graph_def, signature_def)
