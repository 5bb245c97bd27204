// Creates results and scalars of library functions, and adds their kernels to programs.
#ifndef poputil_detail_kernels_hpp
#define poputil_detail_kernels_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/detail/kernel.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/detail/elements.hpp>
#include <utility>
#include <vector>

namespace poputil::detail {

using poplar::detail::Kernel;
using poplar::detail::KernelArguments;

// A new tensor, mapped linearly.
inline poplar::Tensor createLinear(poplar::Graph &graph, const poplar::Type &type,
                                   const std::vector<std::size_t> &shape, const poplar::DebugContext &debugContext) {
  const auto tensor = graph.addVariable(type, shape, debugContext);
  mapTensorLinearly(graph, tensor);
  return tensor;
}

// A new tensor, mapped linearly over its first dimensions: the elements of the last `whole` dimensions stay together.
inline poplar::Tensor createLinearWithWhole(poplar::Graph &graph, const poplar::Type &type,
                                            const std::vector<std::size_t> &shape, unsigned whole,
                                            const poplar::DebugContext &debugContext) {
  const auto tensor = graph.addVariable(type, shape, debugContext);
  std::size_t grain = 1;
  for (std::size_t dim = shape.size() - whole; dim < shape.size(); ++dim) grain *= shape[dim];
  mapTensorLinearly(graph, tensor, static_cast<unsigned>(grain), static_cast<unsigned>(grain));
  return tensor;
}

// A float scalar on tile 0.
inline poplar::Tensor constantScalar(poplar::Graph &graph, const poplar::Type &type, float value,
                                     const poplar::DebugContext &debugContext) {
  const auto constant = graph.addConstant(type, {}, value, debugContext);
  graph.setTileMapping(constant, 0);
  return constant;
}

// addKernel() for functions whose tensors may be empty: then no kernel is added.
inline void addKernelIfAny(poplar::Graph &graph, poplar::program::Sequence &prog,
                           const poplar::DebugContext &debugContext, const std::vector<poplar::Tensor> &inputs,
                           const std::vector<poplar::Tensor> &outputs, poplar::detail::Kernel kernel,
                           poplar::detail::KernelCost cost = {}) {
  for (const auto &output : outputs)
    if (output.numElements() != 0)
      return poplar::detail::addKernel(graph, prog, debugContext, inputs, outputs, std::move(kernel), std::move(cost));
}

inline poplar::detail::KernelCost elementwiseCost() {
  poplar::detail::KernelCost cost;
  cost.elementwise = true;
  return cost;
}

// Dimensions around one: a tensor is `outer` times `size` times `inner` elements.
struct Around {
  std::size_t outer = 1, size = 1, inner = 1;
};

inline Around around(const std::vector<std::size_t> &shape, std::size_t dim) {
  Around result;
  for (std::size_t i = 0; i != shape.size(); ++i)
    (i < dim ? result.outer : i == dim ? result.size : result.inner) *= shape[i];
  return result;
}

}  // namespace poputil::detail

#endif
