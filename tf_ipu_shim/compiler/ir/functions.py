"""Holds all functions of a program: parsed once, changed by passes, written once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.tf_private.protos import config_pb2, function_pb2, rewriter_config_pb2

AS_WRITTEN = config_pb2.ConfigProto(
    graph_options=config_pb2.GraphOptions(
        rewrite_options=rewriter_config_pb2.RewriterConfig(disable_meta_optimizer=True)
    )
).SerializeToString()
"""The `config_proto` of a call that makes TensorFlow run a function unchanged, instead of rewriting it first."""
_serial = itertools.count()


class WrittenFunction(NamedTuple):
    """A FunctionDef with the name of the traced function from which it was made."""

    traced: str
    definition: function_pb2.FunctionDef


class Functions(Mapping[str, FunctionGraph]):
    """The functions of a program by name, parsed at first use.

    A pass changes a function under its own name; outside it gets another one (see `outside`). A script may choose any
    function names, so names do not show the work of passes.

    Args:
        base: the functions from which these differ in part, such as the functions of all replicas.

    Attributes:
        written: the FunctionDefs of these, by the name that they have outside.
    """

    def __init__(
        self, library: Mapping[str, function_pb2.FunctionDef], entry: str, base: Functions | None = None
    ) -> None:
        self.entry = entry
        self._library = library
        self._base = base
        self._graphs: dict[str, FunctionGraph] = {}
        self._outside: dict[str, str] = {}  # names of functions outside
        self.written: dict[str, WrittenFunction] = {} if base is None else base.written

    def __getitem__(self, name: str) -> FunctionGraph:
        graph = self._graphs.get(name)
        if graph is None:
            if self._base is not None:
                return self._base[name]
            graph = self._graphs[name] = FunctionGraph.parse(self._library[name])
        return graph

    def __contains__(self, name: object) -> bool:
        return name in self._graphs or (name in self._library if self._base is None else name in self._base)

    def __iter__(self) -> Any:
        return iter(self.reached())

    def __len__(self) -> int:
        return len(self.reached())

    def reached(self, name: str | None = None) -> list[str]:
        """Returns a function and those it runs, itself first; all functions of the program by default."""
        return list(
            reachable([name or self.entry], lambda function_name: filter(self.__contains__, self[function_name].called))
        )

    def with_ops(self, ops: frozenset[str]) -> set[str]:
        """Returns the functions that contain ops of these types, themselves or in functions they run."""
        callers: dict[str, list[str]] = {}
        having = []
        for name in self.reached():
            graph = self[name]
            for called in graph.called:
                callers.setdefault(called, []).append(name)
            if not graph.ops.isdisjoint(ops):
                having.append(name)
        return set(reachable(having, lambda name: callers.get(name, ())))

    def add(self, graph: FunctionGraph) -> None:
        """Adds a function with a name from `fresh`."""
        self._graphs[graph.name] = graph

    def fresh_name(self, name: str) -> str:
        """Returns an unused function name similar to this one."""
        while True:
            fresh = f"{name}_{next(_serial)}"
            if fresh not in self:
                return fresh

    def with_copies(self, names: Iterable[str]) -> Functions:
        """Returns the same functions, with copies of some that can be changed."""
        functions = Functions(self._library, self.entry, self)
        for name in names:
            functions.add(self[name].copy(name))
        return functions

    def external_name(self, name: str) -> str:
        """Returns the name by which XLA or a host op finds a function.

        All are written under their own names. Another program, or TensorFlow itself, may have another function with the
        script's name. Grappler rewrites functions in place, and merged graphs can have equal names. The plugin passes
        only these to TensorFlow.
        """
        if self._base is not None and name not in self._graphs:
            return self._base.external_name(name)
        if name not in self._outside:
            if name not in self:
                return name  # nothing that the script has brought
            fresh_name = self._outside[name] = self.fresh_name(
                name
            )  # named before it is written: a function may call itself
            definition = self[name].write(fresh_name, lambda proto: strip_attributes(proto, self.external_name))
            self.written[fresh_name] = WrittenFunction(self[name].traced, definition)
        return self._outside[name]

    @property
    def written_definitions(self) -> list[function_pb2.FunctionDef]:
        """All FunctionDefs that were written so far."""
        return [written.definition for written in self.written.values()]

    def find_external(self, name: str) -> WrittenFunction | None:
        """Returns the function with this external name, or None."""
        if name in self.written:
            return self.written[name]
        return WrittenFunction(name, self._library[name]) if name in self._library else None


def strip_attributes(proto: Any, rename: Callable[[str], str]) -> None:
    """Removes lowering-only and placer attributes from a NodeDef and renames the functions it refers to.

    tf2xla stops with a RET_CHECK on a function that is sharded in part.
    """
    proto.device = ""
    for name in vocabulary.PRIVATE_ATTRIBUTES:
        if name in proto.attr:
            del proto.attr[name]
    for attribute in op_types.function_attributes(proto.op):
        for function in op_types.functions_in(proto.attr[attribute]):
            function.name = rename(function.name)
