// Creates a result for an element-wise operation, with the inputs' common shape and a matching tile mapping.
#ifndef popops_ElementWiseUtil_hpp
#define popops_ElementWiseUtil_hpp

#include <poplar/Graph.hpp>
#include <vector>

namespace popops {

// A tensor of the inputs' common shape with the tile mapping of the first input of that shape, else a linear one.
poplar::Tensor createOutputForElementWiseOp(poplar::Graph &graph, const std::vector<poplar::Tensor> &inputs,
                                            const poplar::Type &outputType,
                                            const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
