// Describes the vertices of a graph program (`.gp`), a shared library of codelets, to the engine.
#ifndef POPLAR_DETAIL_VERTEX_TABLE_HPP
#define POPLAR_DETAIL_VERTEX_TABLE_HPP

#include <poplar/detail/vertex_context.hpp>

#include <cstddef>
#include <cstdint>

namespace poplar::detail {

// Rises when one of these structures changes: an engine refuses the tables of another version by name.
inline constexpr std::uint32_t vertexTableVersion = 2;
inline constexpr const char* vertexTableFunction = "poplar_vertex_table";

// Value: a plain member, or a Vector of plain ones, set by setInitialValue.
enum class FieldKind { Input, Output, InOut, Value };

struct Field {
  const char* name;
  FieldKind kind;
  const char* type;        // of an element, as Poplar names it: "float", "half", "unsigned int"; "" for other plain members
  std::size_t type_size;   // of an element
  unsigned depth;          // 0 one element, 1 vector, 2 vector of vectors
  std::size_t offset;      // in the vertex
  std::size_t size;        // of the member
  std::size_t fixed_size;  // elements of a plain array, and of each row of `Vector<Input<T>>`; else 0
  unsigned alignment;      // of the memory that the member is bound to
  unsigned state_bytes;    // of the member in the vertex's state on an IPU
  // Points the member at `count` vectors (one, for depth 0 and 1), of which row r has sizes[r] elements at rows[r].
  // Null for plain values: copy these into the vertex. May be called again with other memory.
  void (*bind)(void* field, void* const* rows, const std::size_t* sizes, std::size_t count);
  // Frees what `bind` allocated; null where it allocates nothing. The vertex's `destroy` calls it.
  void (*release)(void* field);
};

struct Vertex {
  const char* name;  // as poputil::templateVertex spells it: "ns::Name<float,half,true>"
  std::size_t size;
  std::size_t alignment;
  unsigned workers;                             // how often compute is called: 1, or 6 for a MultiVertex
  void (*construct)(void*);                     // in memory of this size and alignment
  void (*destroy)(void*);                       // releases the fields, too
  bool (*compute)(void*, VertexContext&);       // may throw
  std::uint64_t (*cycles)(const void*);         // getCycleEstimate; null without one
  const Field* fields;
  std::size_t field_count;
};

struct VertexTable {
  std::uint32_t version;
  bool checked;  // compiled by `popc --checked`: compute may throw OutOfBounds
  const Vertex* vertices;
  std::size_t count;
};

}  // namespace poplar::detail

#endif
