// Normalises images of three channels and pads them to four.
#ifndef popops_NormaliseImage_hpp
#define popops_NormaliseImage_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// A tensor whose last dimension is 3, with whole pixels on each tile.
poplar::Tensor createNormaliseImageInput(poplar::Graph &graph, const poplar::Type &type,
                                         const poplar::ArrayRef<std::size_t> shape,
                                         const poplar::DebugContext &debugContext = {});

// (tIn[c] * inScale - offsets[c]) * scales[c], and 0 as channel 3. Bytes become half.
poplar::Tensor normaliseImage(poplar::Graph &graph, poplar::program::Sequence &seq, poplar::Tensor tIn, float inScale,
                              poplar::Tensor offsets, poplar::Tensor scales,
                              const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
