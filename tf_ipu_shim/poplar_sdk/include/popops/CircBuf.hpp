// A circular buffer of the tensors that were added last.
#ifndef popops_CircBuf_hpp
#define popops_CircBuf_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <vector>

namespace popops {

class CircBuf {
 public:
  CircBuf(poplar::Graph &graph, const poplar::Type &dataType, unsigned size, const std::vector<std::size_t> &shape,
          const poplar::DebugContext &debugContext = {});

  // The tensor that was added `i` additions before the last one.
  poplar::Tensor prev(unsigned i, poplar::program::Sequence &seq, const poplar::DebugContext &debugContext = {});
  void add(poplar::Tensor t, poplar::program::Sequence &seq, const poplar::DebugContext &debugContext = {});
  // The slot of the last tensor.
  poplar::Tensor getIndex() const { return index_; }
  unsigned size() const { return size_; }
  // The mapping of one slot.
  poplar::Graph::TileToTensorMapping getTileMapping();

 private:
  poplar::Graph &graph_;
  unsigned size_;
  poplar::Tensor index_, slots_;
};

}  // namespace popops

#endif
