// Runs several convolutions one after another, each with its own options, and creates their tensors.
#include <poplin/MultiConvolution.hpp>

#include "poputil/library.hpp"

namespace poplin::multiconv {

using namespace poputil::library;

namespace {

// The debug name of a convolution.
poplar::DebugContext numbered(const poplar::DebugContext &debugContext, std::size_t index) {
  return {debugContext, std::to_string(index)};
}

const CreateTensorArgs &argumentsAt(const std::string &function, const std::vector<CreateTensorArgs> &args,
                                    unsigned index, const OptionFlags &options) {
  checkOptions(function.c_str(), options, multi_convolution_options);
  if (index >= args.size())
    fail(function, "the index is " + std::to_string(index) + " of " + std::to_string(args.size()) + " convolutions",
         "Pass the number of a convolution");
  return args[index];
}

template <class Arguments>
void addUpdates(poplar::Graph &graph, const std::vector<Arguments> &args, Sequence &prog,
                const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *cache) {
  checkOptions("poplin::multiconv::convolutionWeightUpdate", options, multi_convolution_options);
  for (std::size_t i = 0; i != args.size(); ++i)
    poplin::convolutionWeightUpdate(graph, args[i].zDeltas, args[i].weights, args[i].activations, args[i].params,
                                    args[i].scale, prog, numbered(debugContext, i), args[i].options, cache);
}

}  // namespace

Tensor createWeights(poplar::Graph &graph, const std::vector<CreateTensorArgs> &args, unsigned weightsIndex,
                     const OptionFlags &options, PlanningCache *cache) {
  const auto &one = argumentsAt("poplin::multiconv::createWeights", args, weightsIndex, options);
  return poplin::createWeights(graph, one.params, one.name, one.options, cache);
}

Tensor createInput(poplar::Graph &graph, const std::vector<CreateTensorArgs> &args, unsigned inputIndex,
                   const OptionFlags &options, PlanningCache *cache) {
  const auto &one = argumentsAt("poplin::multiconv::createInput", args, inputIndex, options);
  return poplin::createInput(graph, one.params, one.name, one.options, cache);
}

void weightsTransposeChansFlipXY(poplar::Graph &graph, std::vector<ConvolutionArgs> &args,
                                 const std::vector<Tensor> &weightsIn, Sequence &prog, const OptionFlags &options,
                                 const poplar::DebugContext &debugContext, PlanningCache *cache) {
  const std::string function = "poplin::multiconv::weightsTransposeChansFlipXY";
  checkOptions(function.c_str(), options, multi_convolution_options);
  if (args.size() != weightsIn.size())
    fail(function, "there are " + std::to_string(args.size()) + " convolutions and " +
         std::to_string(weightsIn.size()) + " weights", "Pass weights for each convolution");
  for (std::size_t i = 0; i != args.size(); ++i) {
    const auto name = numbered(debugContext, i);
    if (!args[i].weights.valid())
      args[i].weights = poplin::createWeights(graph, args[i].params, name, args[i].options, cache);
    poplin::weightsTransposeChansFlipXY(graph, weightsIn[i], args[i].weights, prog, name, args[i].options);
  }
}

std::vector<Tensor> convolution(poplar::Graph &graph, const std::vector<ConvolutionArgs> &args,
                                bool transposeAndFlipWeights, Sequence &prog,
                                const poplar::DebugContext &debugContext, const OptionFlags &options,
                                PlanningCache *cache) {
  checkOptions("poplin::multiconv::convolution", options, multi_convolution_options);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i != args.size(); ++i)
    outputs.push_back(poplin::convolution(graph, args[i].inputs, args[i].weights, args[i].params,
                                          transposeAndFlipWeights, prog, numbered(debugContext, i), args[i].options,
                                          cache));
  return outputs;
}

std::vector<Tensor> calculateWeightDeltas(poplar::Graph &graph, const std::vector<CalculateWeightDeltasArgs> &args,
                                          Sequence &prog, const poplar::DebugContext &debugContext,
                                          const OptionFlags &options, PlanningCache *cache) {
  checkOptions("poplin::multiconv::calculateWeightDeltas", options, multi_convolution_options);
  std::vector<Tensor> deltas;
  for (std::size_t i = 0; i != args.size(); ++i)
    deltas.push_back(poplin::calculateWeightDeltas(graph, args[i].zDeltas, args[i].activations, args[i].params, prog,
                                                   numbered(debugContext, i), args[i].options, cache));
  return deltas;
}

void convolutionWeightUpdate(poplar::Graph &graph, const std::vector<ConvWeightUpdateArgs> &args, Sequence &prog,
                             const poplar::DebugContext &debugContext, const OptionFlags &options,
                             PlanningCache *cache) {
  addUpdates(graph, args, prog, debugContext, options, cache);
}

void convolutionWeightUpdate(poplar::Graph &graph, const std::vector<ConvWeightUpdateArgsScalar> &args, Sequence &prog,
                             const poplar::DebugContext &debugContext, const OptionFlags &options,
                             PlanningCache *cache) {
  addUpdates(graph, args, prog, debugContext, options, cache);
}

}  // namespace poplin::multiconv
