// Losses of sequences without an alignment (connectionist temporal classification). Data is {steps, batch, classes} of
// float or half, labels are {batch, longest label}. Both have a length for each sequence, of type int or unsigned int.
// The loss is the negative logarithm of the probability of all paths to the label. Without a path it is infinite, and
// the gradient is NaN. Gradients after a sequence's length are 0.
#ifndef popnn_CTCLoss_hpp
#define popnn_CTCLoss_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popnn/CTCPlan.hpp>
#include <utility>

namespace popnn {
namespace ctc {

Plan plan(const poplar::Graph &graph, const poplar::Type &inType, const poplar::Type &outType, unsigned batchSize,
          unsigned maxTime, unsigned maxLabelLength, unsigned numClasses, const poplar::OptionFlags &options = {});

poplar::Tensor createDataInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                               const std::size_t maxTime, const std::size_t numClasses, const Plan &plan,
                               const poplar::DebugContext &debugContext = {});
poplar::Tensor createLabelsInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                                 const std::size_t maxLabelLength, const Plan &plan,
                                 const poplar::DebugContext &debugContext = {});

// The losses {batch} and the gradients of their sum, in `outType`: of the logits, or of the log probabilities with the
// option includeSoftmaxGradient false.
std::pair<poplar::Tensor, poplar::Tensor> calcLossAndGradientLogProbabilities(
    poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logProbs, const poplar::Tensor &labels,
    const poplar::Tensor &dataLengths, const poplar::Tensor &labelLengths, poplar::program::Sequence &prog,
    const unsigned blankClass, const Plan &plan, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});
std::pair<poplar::Tensor, poplar::Tensor> calcLossAndGradientLogits(
    poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logits, const poplar::Tensor &labels,
    const poplar::Tensor &dataLengths, const poplar::Tensor &labelLengths, poplar::program::Sequence &prog,
    const unsigned blankClass, const Plan &plan, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

// Returns the losses only.
poplar::Tensor calcCTCLossLogProbabilities(poplar::Graph &graph, const poplar::Type &outType,
                                           const poplar::Tensor &logProbs, const poplar::Tensor &labels,
                                           const poplar::Tensor &dataLengths, const poplar::Tensor &labelLengths,
                                           poplar::program::Sequence &prog, const unsigned blankClass,
                                           const Plan &plan, const poplar::DebugContext &debugContext = {},
                                           const poplar::OptionFlags &options = {});
poplar::Tensor calcCTCLossLogits(poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logits,
                                 const poplar::Tensor &labels, const poplar::Tensor &dataLengths,
                                 const poplar::Tensor &labelLengths, poplar::program::Sequence &prog,
                                 const unsigned blankClass, const Plan &plan,
                                 const poplar::DebugContext &debugContext = {},
                                 const poplar::OptionFlags &options = {});

}  // namespace ctc
}  // namespace popnn

#endif
