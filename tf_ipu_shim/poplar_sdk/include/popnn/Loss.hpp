// Computes losses with their gradients, accuracy, and the largest or smallest elements of rows.
#ifndef popnn_Loss_hpp
#define popnn_Loss_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <utility>

namespace popnn {

// Computes losses of outputs p {batch, classes} and labels y, one for each row. The loss is the sum of (p - e)^2 / 2,
// with e the label's one-hot row, or it is -log(p[y]). Both have the gradient p - e. A row with the label
// MASKED_LABEL_CODE has loss and gradient 0.
enum LossType { SUM_SQUARED_LOSS, CROSS_ENTROPY_LOSS };

// The program that writes `loss`, one for each row, and `deltas`, the gradient. For the cross entropy the outputs are
// divided by modelOutputScaling, and the gradient is times deltasScale / modelOutputScaling of theirs. Further the number
// of rows whose largest output is their label's.
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs,
                                  const poplar::Tensor &expected, const poplar::Tensor &loss,
                                  const poplar::Tensor &deltas, LossType lossType,
                                  const poplar::DebugContext &debugContext = {});
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs,
                                  const poplar::Tensor &expected, const poplar::Tensor &loss,
                                  const poplar::Tensor &deltas, const poplar::Tensor &deltasScale,
                                  const poplar::Tensor &modelOutputScaling, LossType lossType,
                                  const poplar::DebugContext &debugContext = {});
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs,
                                  const poplar::Tensor &expected, const poplar::Tensor &loss,
                                  const poplar::Tensor &deltas, const poplar::Tensor &deltasScale,
                                  const poplar::Tensor &modelOutputScaling, const poplar::Tensor &numCorrect,
                                  LossType lossType, const poplar::DebugContext &debugContext = {});
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs,
                                  const poplar::Tensor &expected, const poplar::Tensor &loss,
                                  const poplar::Tensor &deltas, const poplar::Tensor &numCorrect, LossType lossType,
                                  const poplar::DebugContext &debugContext = {});
poplar::program::Program calcAccuracy(poplar::Graph &graph, const poplar::Tensor &modelOutputs,
                                      const poplar::Tensor &expected, const poplar::Tensor &numCorrect,
                                      const poplar::DebugContext &debugContext = {});

// The index of each row's first largest, or smallest, element as an unsigned integer; and the element.
poplar::Tensor argMax(poplar::Graph &graph, const poplar::Tensor &input, poplar::program::Sequence &prog,
                      const poplar::DebugContext &debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> maxAndArgMax(poplar::Graph &graph, const poplar::Tensor &input,
                                                       poplar::program::Sequence &prog,
                                                       const poplar::DebugContext &debugContext = {});
poplar::Tensor argMin(poplar::Graph &graph, const poplar::Tensor &input, poplar::program::Sequence &prog,
                      const poplar::DebugContext &debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> minAndArgMin(poplar::Graph &graph, const poplar::Tensor &input,
                                                       poplar::program::Sequence &prog,
                                                       const poplar::DebugContext &debugContext = {});

// The K largest elements of each row; `indices` is set to their places. Sorted descending if `sort`.
poplar::Tensor topK(poplar::Graph &graph, const poplar::Tensor &input, poplar::Tensor &indices, unsigned K, bool sort,
                    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

}  // namespace popnn

#endif
