"""Loads a TensorFlow 1 SavedModel as one frozen graph, and saves a frozen graph as a SavedModel.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.frontend.conversion import graph_nodes

_TABLES = "table_initializer"
_ASSETS = "asset_filepaths"


@dataclasses.dataclass(frozen=True)
class FrozenGraph:
    """One signature of a SavedModel as a frozen graph.

    Args:
        graph_def: a graph definition with constants instead of variables.
        initializers: ops that fill its lookup tables.
    """

    graph_def: Any
    signature_def: Any
    initializers: Sequence[str] = ()


def load(directory: str, tags: Sequence[str], signature_key: str) -> FrozenGraph:
    """Reads a SavedModel."""
    with v1.Graph().as_default(), v1.Session() as session, _silence_deprecations():
        meta_graph_def = v1.saved_model.loader.load(session, tags, directory)
        if _ASSETS in meta_graph_def.collection_def:
            raise ValueError(
                f"The SavedModel in {directory} reads asset files, which cannot be converted. Export it "
                "without the part that reads them, and run that part before."
            )
        return freeze(session, meta_graph_def, signature_key)


def freeze(session: Any, meta_graph_def: Any, signature_key: str) -> FrozenGraph:
    """Makes constants of the variables that a session has."""
    if signature_key not in meta_graph_def.signature_def:
        signatures = ", ".join(key for key in meta_graph_def.signature_def if not key.startswith("__")) or "none"
        raise ValueError(
            f"There is no signature {signature_key!r}; expected one of {signatures}. Name one with "
            "input_saved_model_signature_key."
        )
    signature_def = meta_graph_def.signature_def[signature_key]
    tables = [value for value in meta_graph_def.collection_def[_TABLES].node_list.value if value]
    kept_names = [graph_nodes.node_name(name) for name in (*graph_nodes.signature_tensors(signature_def), *tables)]
    with _silence_deprecations():
        graph_def = v1.graph_util.convert_variables_to_constants(
            session, session.graph.as_graph_def(add_shapes=True), list(dict.fromkeys(kept_names))
        )
    return FrozenGraph(graph_def, signature_def, tables)


def save(frozen: FrozenGraph, directory: str, tags: Sequence[str], signature_key: str) -> None:
    """Writes a SavedModel."""
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(frozen.graph_def, name="")
        node_names = {node.name for node in frozen.graph_def.node}
        names = [name for name in map(graph_nodes.node_name, frozen.initializers) if name in node_names]
        tables = [graph.get_operation_by_name(name) for name in names]
        main_op = v1.group(*tables, name="initialize_tables") if tables else None
        builder = v1.saved_model.builder.SavedModelBuilder(directory)
        with v1.Session() as session, _silence_deprecations():
            builder.add_meta_graph_and_variables(
                session, list(tags), signature_def_map={signature_key: frozen.signature_def}, main_op=main_op
            )
            builder.save()


@contextlib.contextmanager
def _silence_deprecations() -> Iterator[None]:
    """Suppresses TensorFlow's deprecation warnings for TensorFlow 1 calls, which the caller has chosen."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
