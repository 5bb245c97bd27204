// Functions that estimate the cycles of a vertex.
#ifndef poplar_PerfEstimateFunc_hpp
#define poplar_PerfEstimateFunc_hpp

#include <cstdint>
#include <functional>

namespace poplar {

class VertexIntrospector;
class Target;

struct VertexPerfEstimate {
  VertexPerfEstimate() = default;
  VertexPerfEstimate(std::uint64_t cycleCount, std::uint64_t flopCount = 0)
      : cycles(cycleCount), flops(flopCount) {}
  std::uint64_t cycles = 0;
  std::uint64_t flops = 0;
};

using PerfEstimateFunc = std::function<VertexPerfEstimate(const VertexIntrospector&, const Target&)>;

}  // namespace poplar

#endif
