// The most probable labels of sequences without an alignment (connectionist temporal classification), by a beam search.
// Data is {steps, batch, classes} of float or half, with a length for each sequence, of type int or unsigned int.
// Options are those of ctc::plan().
#ifndef popnn_CTCInference_hpp
#define popnn_CTCInference_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popnn/CTCPlan.hpp>
#include <tuple>

namespace popnn {
namespace ctc_infer {

ctc::Plan plan(const poplar::Graph &graph, const poplar::Type &inType, unsigned batchSize, unsigned maxTime,
               unsigned numClasses, unsigned beamwidth, const poplar::OptionFlags &options = {});

poplar::Tensor createDataInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                               const std::size_t maxTime, const std::size_t numClasses, const ctc::Plan &plan,
                               const poplar::DebugContext &debugContext = {});

// Returns three tensors, the most probable path first. They are the negative logarithms of the probabilities {batch,
// topPaths} in the data's type, the labels' lengths {batch, topPaths}, and the labels {batch, topPaths, steps}.
// Elements after a label's length are the blank class. A path that the search has not found has probability 0 and
// length 0.
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor> beamSearchDecoderLogProbabilities(
    poplar::Graph &graph, const poplar::Tensor &logProbs, const poplar::Tensor &dataLengths,
    poplar::program::Sequence &prog, unsigned blankClass, unsigned beamwidth, unsigned topPaths, const ctc::Plan &plan,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor> beamSearchDecoderLogits(
    poplar::Graph &graph, const poplar::Tensor &logits, const poplar::Tensor &dataLengths,
    poplar::program::Sequence &prog, unsigned blankClass, unsigned beamwidth, unsigned topPaths, const ctc::Plan &plan,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

}  // namespace ctc_infer
}  // namespace popnn

#endif
