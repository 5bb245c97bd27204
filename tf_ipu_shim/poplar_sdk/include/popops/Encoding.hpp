// Writes one-hot rows, and ranges of consecutive integers (iota).
#ifndef popops_Encoding_hpp
#define popops_Encoding_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/EncodingConstants.hpp>

namespace popops {

// Row i of `encoded` gets 1 at indices[i], else 0. A row whose index lies outside of it, or is MASKED_LABEL_CODE, has no 1.
void encodeOneHot(poplar::Graph &graph, const poplar::Tensor &indices, const poplar::Tensor &encoded,
                  poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

// With the values of these scalars.
void encodeOneHot(poplar::Graph &graph, const poplar::Tensor &indices, const poplar::Tensor &encoded,
                  poplar::program::Sequence &prog, const poplar::Tensor &on, const poplar::Tensor &off,
                  const poplar::DebugContext &debugContext = {});

// Writes startInteger, startInteger + 1, ... to a vector of type UNSIGNED_INT, or INT.
void iota(poplar::Graph &graph, const poplar::Tensor &t, unsigned startInteger, poplar::program::Sequence &prog,
          const poplar::DebugContext &debugContext = {});
void iota(poplar::Graph &graph, const poplar::Tensor &t, int startInteger, poplar::program::Sequence &prog,
          const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
