"""Reads the table of vertices of a graph program, and runs a vertex on NumPy arrays."""

import ctypes
import dataclasses

import numpy as np

KINDS = ("Input", "Output", "InOut", "Value")
BIND = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t
)
ON_VERTEX = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CYCLES = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)


class Context(ctypes.Structure):
    """As in `poplar/detail/vertex_context.hpp`."""

    _fields_ = [
        ("tile", ctypes.c_uint),
        ("worker", ctypes.c_uint),
        ("random", ctypes.c_uint64),
        ("vertex", ctypes.c_void_p),
    ]


COMPUTE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(Context))


class Field(ctypes.Structure):
    """As in `poplar/detail/vertex_table.hpp`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("type", ctypes.c_char_p),
        ("type_size", ctypes.c_size_t),
        ("depth", ctypes.c_uint),
        ("offset", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("fixed_size", ctypes.c_size_t),
        ("alignment", ctypes.c_uint),
        ("state_bytes", ctypes.c_uint),
        ("bind", BIND),
        ("release", ON_VERTEX),
    ]


class Entry(ctypes.Structure):
    """As in `poplar/detail/vertex_table.hpp`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("alignment", ctypes.c_size_t),
        ("workers", ctypes.c_uint),
        ("construct", ON_VERTEX),
        ("destroy", ON_VERTEX),
        ("compute", COMPUTE),
        ("cycles", CYCLES),
        ("fields", ctypes.POINTER(Field)),
        ("field_count", ctypes.c_size_t),
    ]


class Table(ctypes.Structure):
    """As in `poplar/detail/vertex_table.hpp`."""

    _fields_ = [
        ("version", ctypes.c_uint32),
        ("checked", ctypes.c_bool),
        ("vertices", ctypes.POINTER(Entry)),
        ("count", ctypes.c_size_t),
    ]


@dataclasses.dataclass
class GraphProgram:
    """A loaded graph program; the library stays loaded as long as this lives."""

    path: str

    def __post_init__(self):
        self._library = ctypes.CDLL(str(self.path))
        self._library.poplar_vertex_table.restype = ctypes.POINTER(Table)
        self.table = self._library.poplar_vertex_table()[0]

    def vertices(self):
        return {entry.name.decode(): entry for entry in self.table.vertices[: self.table.count]}

    def fields(self, vertex):
        entry = self.vertices()[vertex]
        return {field.name.decode(): field for field in entry.fields[: entry.field_count]}

    def described(self, vertex):
        """Kind, type and depth of each field."""
        fields = self.fields(vertex).items()
        return {name: (KINDS[field.kind], field.type.decode(), field.depth) for name, field in fields}

    def run(self, vertex, values=None, **memory):
        """Runs a vertex: `memory` has an array, or a list of arrays, for each connected field; `values` the others."""
        entry, fields = self.vertices()[vertex], self.fields(vertex)
        state = np.zeros(entry.size + 64, np.uint8)
        address = (state.ctypes.data + 63) // 64 * 64
        entry.construct(address)
        for name, value in (values or {}).items():
            ctypes.memmove(address + fields[name].offset, value.tobytes(), value.nbytes)
        for name, arrays in memory.items():
            rows = arrays if isinstance(arrays, list) else [arrays]
            pointers = (ctypes.c_void_p * len(rows))(*(row.ctypes.data for row in rows))
            sizes = (ctypes.c_size_t * len(rows))(*(row.size for row in rows))
            fields[name].bind(address + fields[name].offset, pointers, sizes, len(rows))
        done = [entry.compute(address, Context(0, worker)) for worker in range(entry.workers)]
        cycles = entry.cycles(address) if entry.cycles else None
        entry.destroy(address)
        return done, cycles
