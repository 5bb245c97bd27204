"""`ipu_tensorflow_addons.saved_model_tool.converter.converter`: the base class of converters."""

from __future__ import annotations

import abc
from typing import Any


class Converter(abc.ABC):
    """Rewrites a graph and the signature that names its inputs and outputs.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.converter.Converter`.

    Example:
        >>> class Unchanged(Converter):
        ...     def apply(self, graph_def, signature_def):
        ...         return graph_def, signature_def
        >>> Unchanged().apply("graph", "signature")
        ('graph', 'signature')
    """

    @abc.abstractmethod
    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """Returns the converted graph and its signature.

        Args:
            graph_def: a `GraphDef`; it may be changed.
            signature_def: a `SignatureDef`; it may be changed.

        Raises:
            NotImplementedError: a converter does not override this method.
        """
        raise NotImplementedError("Abstract method: each converter overrides it.")
