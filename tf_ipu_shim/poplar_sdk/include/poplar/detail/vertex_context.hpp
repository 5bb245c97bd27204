// The tile, worker and random state of a running vertex, which its codelet reads.
#ifndef POPLAR_DETAIL_VERTEX_CONTEXT_HPP
#define POPLAR_DETAIL_VERTEX_CONTEXT_HPP

#include <cstdint>

namespace poplar::detail {

struct VertexContext {
  unsigned tile = 0;
  unsigned worker = 0;
  std::uint64_t random = 0;  // the state of the worker's random generator
  void* vertex = nullptr;
};

// The output function of the generator "splitmix64": each bit of the result depends on all bits of the value.
inline std::uint64_t mixBits(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

inline constexpr std::uint64_t randomIncrement = 0x9e3779b97f4a7c15;  // of splitmix64

// Of the vertex that this thread runs; each graph program has its own.
inline thread_local VertexContext* runningVertex = nullptr;

}  // namespace poplar::detail

#endif
