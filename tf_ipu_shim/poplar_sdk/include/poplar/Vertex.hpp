// The base classes of vertices, and the types of their fields.
#ifndef POPLAR_VERTEX_HPP
#define POPLAR_VERTEX_HPP

#include <ipu_builtins.h>
#include <poplar/AvailableVTypes.h>
#include <poplar/FieldTypes.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/InOutTypes.hpp>
#include <poplar/Loops.hpp>
#include <poplar/VectorListTypes.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

#define WORKER_ALIGN

namespace poplar {

namespace detail {
// Marks a class as a vertex, for its registration.
class VertexBase {};
}  // namespace detail

// `compute()` runs in one worker thread of a tile.
class Vertex : public detail::VertexBase {};

// `compute(unsigned workerId)` runs in all worker threads of a tile.
class MultiVertex : public detail::VertexBase {
 public:
  static constexpr unsigned numWorkers() { return 6; }
};

// `compute()` runs in the supervisor thread of a tile.
class SupervisorVertex : public detail::VertexBase {};

template <bool pred>
using SupervisorVertexIf = std::conditional_t<pred, SupervisorVertex, Vertex>;

}  // namespace poplar

#endif
