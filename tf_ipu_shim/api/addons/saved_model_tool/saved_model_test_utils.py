"""`ipu_tensorflow_addons.saved_model_tool.saved_model_test_utils`: test models for converters."""

from __future__ import annotations

import abc
import functools
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.frontend.conversion import frozen_graph

_KEY = v1.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_TAGS = [v1.saved_model.tag_constants.SERVING]


def declare_signature(
    input_name_keys: Sequence[str] | None = None, output_name_keys: Sequence[str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Names the inputs and outputs of a model: a decorator of `ModelForTest.create`.

    Args:
        input_name_keys: the names of the placeholders, in their order; their own names when left out.
        output_name_keys: the names of the tensors that `create` returns; the names of its ops when left out.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_test_utils.declare_signature`.
    """

    def decorate(create: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(create)
        def declared(self: Any) -> Any:
            self._input_keys, self._output_keys = input_name_keys, output_name_keys
            return create(self)

        return declared

    return decorate


class ModelForTest(abc.ABC):
    """A model that is built, initialized and exported as a graph with a signature.

    Args:
        freeze: whether its variables become constants.
        save: whether it is saved to a directory that is deleted with this object.

    Source: `ipu_tensorflow_addons.saved_model_tool.saved_model_test_utils.ModelForTest`.

    Example:
        >>> class Double(ModelForTest):
        ...     def create(self):
        ...         return 2.0 * tf.compat.v1.placeholder(tf.float32, [3], name="x")
        >>> [info.name for info in Double(freeze=True).signature_def.inputs.values()]
        ['x:0']
    """

    def __init__(self, freeze: bool = False, save: bool = False) -> None:
        self._input_keys: Sequence[str] | None = None
        self._output_keys: Sequence[str] | None = None
        self._directory = tempfile.mkdtemp() if save else None
        if self._directory:
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        self._graph = v1.Graph()
        with self._graph.as_default(), v1.Session() as session:
            created = self.create()
            outputs = list(created) if isinstance(created, (list, tuple)) else [created]
            self._signature_def = self._signature(outputs)
            session.run(v1.global_variables_initializer())
            self._graph_def = self._graph.as_graph_def()
            if freeze:
                meta_graph_def = v1.MetaGraphDef(signature_def={_KEY: self._signature_def})
                self._graph_def = frozen_graph.freeze(session, meta_graph_def, _KEY).graph_def
            elif save:
                builder = v1.saved_model.builder.SavedModelBuilder(self.model_path)
                builder.add_meta_graph_and_variables(session, _TAGS, {_KEY: self._signature_def})
                builder.save()
        if freeze and save:
            frozen = frozen_graph.FrozenGraph(self._graph_def, self._signature_def)
            frozen_graph.save(frozen, self.model_path, _TAGS, _KEY)

    @abc.abstractmethod
    def create(self) -> Any:
        """Builds the model in the current graph and returns its outputs."""

    @property
    def graph_def(self) -> Any:
        """The graph."""
        return self._graph_def

    @property
    def signature_def(self) -> Any:
        """The signature."""
        return self._signature_def

    @property
    def model_path(self) -> str:
        """The directory of the SavedModel, which exists once the model is saved.

        Raises:
            ValueError: it is not to be saved.
        """
        if self._directory is None:
            raise ValueError("The model is not saved: make it with save=True.")
        return f"{self._directory}/model"

    def _signature(self, outputs: Sequence[Any]) -> Any:
        placeholders = [
            operation.outputs[0] for operation in self._graph.get_operations() if operation.type == "Placeholder"
        ]
        infos = [
            {key: v1.saved_model.build_tensor_info(tensor) for key, tensor in zip(keys, tensors)}
            for keys, tensors in (
                (self._input_keys or [placeholder.op.name for placeholder in placeholders], placeholders),
                (self._output_keys or [output.op.name for output in outputs], outputs),
            )
        ]
        return v1.saved_model.build_signature_def(*infos, method_name="tensorflow/serving/predict")
