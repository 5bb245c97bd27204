// Fills tensors with a value.
#ifndef popops_Fill_hpp
#define popops_Fill_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// For float, int, unsigned, bool and the integers of 8, 16 and 64 bits; the value is converted to the tensor's type.
template <typename FillValueType>
void fill(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog, FillValueType fillValue,
          const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
