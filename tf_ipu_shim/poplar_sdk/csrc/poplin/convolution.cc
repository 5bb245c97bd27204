// Convolutions as matmuls of the weights with columns of the input.
#include <numeric>
#include <poplin/ConvUtil.hpp>
#include <poplin/Convolution.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/detail/matrices.hpp>

#include "poputil/library.hpp"

namespace poplin {

using namespace poputil::library;

POPLAR_FIELDS(ConvParams::InputTransform, part.truncationLower, part.truncationUpper, part.dilation, part.paddingLower,
              part.paddingUpper, part.flip)
POPLAR_FIELDS(ConvParams::OutputTransform, part.truncationLower, part.truncationUpper, part.stride, part.paddingLower,
              part.paddingUpper)
POPLAR_FIELDS(ConvParams, part.inputType, part.outputType, part.batchSize, part.inputFieldShape, part.kernelShape,
              part.inputChannelsPerConvGroup, part.outputChannelsPerConvGroup, part.numConvGroups, part.inputTransform,
              part.kernelTransform, part.outputTransform)

namespace {

Shape inputShape(const ConvParams &params) {
  Shape shape{params.batchSize, params.getNumInputChans()};
  shape.insert(shape.end(), params.inputFieldShape.begin(), params.inputFieldShape.end());
  return shape;
}

Shape outputShape(const ConvParams &params) {
  Shape shape{params.batchSize, params.getNumOutputChans()};
  const auto field = params.getOutputFieldShape();
  shape.insert(shape.end(), field.begin(), field.end());
  return shape;
}

Shape weightsShape(const ConvParams &params) {
  Shape shape{params.numConvGroups, params.outputChannelsPerConvGroup, params.inputChannelsPerConvGroup};
  shape.insert(shape.end(), params.kernelShape.begin(), params.kernelShape.end());
  return shape;
}

void checkShape(const char *what, const Tensor &tensor, const Shape &shape) {
  if (tensor.shape() != shape)
    fail("poplin::convolution", std::string(what) + " has the shape " +
         poputil::detail::describeShape(tensor.shape()) + "; expected " + poputil::detail::describeShape(shape),
         "Pass tensors that fit the ConvParams");
}

// For each dimension, the input index for an output and a kernel index; ~0u for padding.
class Meetings {
 public:
  Meetings() = default;
  explicit Meetings(const ConvParams &params) : params_(params), output_(params.getOutputFieldShape()) {
    for (unsigned dim = 0; dim != params.getNumFieldDims(); ++dim)
      for (unsigned kernel = 0; kernel != params.kernelShape[dim]; ++kernel)
        for (unsigned out = 0; out != output_[dim]; ++out)
          (tables_.resize(dim + 1), tables_[dim]).push_back(getInputIndex(dim, out, kernel, params));
  }

  const ConvParams &params() const { return params_; }
  std::size_t outputs() const { return poputil::detail::product(output_); }
  std::size_t kernels() const { return poputil::detail::product(params_.kernelShape); }
  std::size_t inputs() const { return poputil::detail::product(params_.inputFieldShape); }

  // Writes the columns {channels, kernel, output} of one group of one image.
  void fillColumns(const float *image, float *columns) const {
    for (std::size_t channel = 0; channel != params_.inputChannelsPerConvGroup; ++channel, image += inputs())
      for (std::size_t kernel = 0; kernel != kernels(); ++kernel, columns += outputs())
        fillRow(image, kernel, 0, 0, columns);
  }

 private:
  // The outputs of dimensions from `dim` on for a kernel's element; `base` is the input's offset so far.
  float *fillRow(const float *image, std::size_t kernel, unsigned dim, std::size_t base, float *row) const {
    if (dim == output_.size()) {
      *row = image[base];
      return row + 1;
    }
    const std::size_t inner = innerKernels(dim), index = kernel / inner % params_.kernelShape[dim];
    const auto *table = tables_[dim].data() + index * output_[dim];
    for (std::size_t out = 0; out != output_[dim]; ++out) {
      if (table[out] == ~0u) row = std::fill_n(row, innerOutputs(dim), 0.0f);
      else row = fillRow(image, kernel, dim + 1, base * params_.inputFieldShape[dim] + table[out], row);
    }
    return row;
  }

  std::size_t innerKernels(unsigned dim) const { return productFrom(params_.kernelShape, dim + 1); }
  std::size_t innerOutputs(unsigned dim) const { return productFrom(output_, dim + 1); }
  static std::size_t productFrom(const Shape &shape, std::size_t dim) {
    return std::accumulate(shape.begin() + dim, shape.end(), std::size_t(1), std::multiplies<>());
  }

  ConvParams params_;
  Shape output_;
  std::vector<std::vector<unsigned>> tables_;
};

template <class Archive>
void transferFields(Archive &archive, Meetings &meetings) {
  ConvParams params = meetings.params();
  poplar::detail::transfer(archive, params);
  if constexpr (Archive::reads) meetings = Meetings(params);
}

// Calls `visit` with each image's group, in parallel, and its columns.
template <class Visit>
void forEachImage(const Meetings &meetings, const float *in, Visit visit) {
  const auto &params = meetings.params();
  const auto group_size = params.inputChannelsPerConvGroup * meetings.inputs();
  const auto columns_size = params.inputChannelsPerConvGroup * meetings.kernels() * meetings.outputs();
  poplar::detail::parallelFor(params.batchSize * params.numConvGroups, 1, [&](std::size_t begin, std::size_t end) {
    std::vector<float> columns(columns_size);
    for (; begin != end; ++begin) {
      meetings.fillColumns(in + begin * group_size, columns.data());
      visit(begin, begin % params.numConvGroups, columns.data());
    }
  });
}

void runConvolution(const KernelArguments &arguments, const Meetings &meetings) {
  const auto &params = meetings.params();
  const auto in = poputil::detail::readFloats(params.inputType, arguments.inputs[0],
                                              poputil::detail::product(inputShape(params)));
  const auto weights = poputil::detail::readFloats(params.inputType, arguments.inputs[1],
                                                   poputil::detail::product(weightsShape(params)));
  std::vector<float> out(poputil::detail::product(outputShape(params)));
  const auto depth = params.inputChannelsPerConvGroup * meetings.kernels();
  const auto rows = params.outputChannelsPerConvGroup;
  forEachImage(meetings, in.data(), [&](std::size_t image, std::size_t group, const float *columns) {
    poputil::detail::multiply(weights.data() + group * rows * depth, columns,
                              out.data() + image * rows * meetings.outputs(), rows, depth, meetings.outputs());
  });
  poputil::detail::writeFloats(params.outputType, out.data(), arguments.outputs[0], out.size());
}

void runWeightDeltas(const KernelArguments &arguments, const Meetings &meetings, const poplar::Type &deltasType) {
  const auto &params = meetings.params();
  const auto in = poputil::detail::readFloats(params.inputType, arguments.inputs[0],
                                              poputil::detail::product(inputShape(params)));
  const auto deltas = poputil::detail::readFloats(deltasType, arguments.inputs[1],
                                                  poputil::detail::product(outputShape(params)));
  std::vector<float> gradient(poputil::detail::product(weightsShape(params)));
  const auto depth = params.inputChannelsPerConvGroup * meetings.kernels();
  const auto rows = params.outputChannelsPerConvGroup;
  std::vector<float> columns(depth * meetings.outputs());
  const auto group_size = params.inputChannelsPerConvGroup * meetings.inputs();
  for (std::size_t image = 0; image != params.batchSize * params.numConvGroups; ++image) {
    meetings.fillColumns(in.data() + image * group_size, columns.data());
    poputil::detail::addProductWithTransposed(deltas.data() + image * rows * meetings.outputs(), columns.data(),
                                              gradient.data() + image % params.numConvGroups * rows * depth, rows,
                                              meetings.outputs(), depth);
  }
  poputil::detail::writeFloats(params.inputType, gradient.data(), arguments.outputs[0], gradient.size());
}

// The view of weights {groups, a, b, kernel...} as {groups, b, a, kernel... backwards}.
Tensor transposeAndFlip(const Tensor &weights) {
  auto view = weights.dimShufflePartial({1, 2}, {2, 1});
  for (unsigned dim = 3; dim < view.rank(); ++dim) view = view.reverse(dim);
  return view;
}

void checkTypes(const ConvParams &params, const Tensor &in, const Tensor &weights) {
  if (in.elementType() != params.inputType || weights.elementType() != params.inputType ||
      !poputil::detail::isFloating(params.inputType) || !poputil::detail::isFloating(params.outputType))
    fail("poplin::convolution", "the types are " + poputil::detail::typeName(in.elementType()) + " and " +
         poputil::detail::typeName(weights.elementType()) + "; expected the ConvParams' " +
         poputil::detail::typeName(params.inputType) + ", float or half", "Cast the tensors");
}

std::uint64_t flopsOf(const ConvParams &params) {
  std::uint64_t products = 1;
  for (unsigned dim = 0; dim != params.getNumFieldDims(); ++dim) {
    std::uint64_t used = 0;
    for (unsigned out = 0; out != params.getOutputSize(dim); ++out)
      for (unsigned kernel = 0; kernel != params.kernelShape[dim]; ++kernel)
        used += getInputIndex(dim, out, kernel, params) != ~0u;
    products *= used;
  }
  return 2 * products * params.batchSize * params.numConvGroups * params.inputChannelsPerConvGroup *
         params.outputChannelsPerConvGroup;
}

unsigned numberOf(const OptionFlags &options, const char *name, unsigned otherwise) {
  const auto text = valueOf(options, name, "");
  return text.empty() ? otherwise : static_cast<unsigned>(std::stoul(text, nullptr, 0));
}

// A new tensor, mapped linearly over the tiles that the options leave.
Tensor createMapped(const std::string &function, poplar::Graph &graph, const poplar::Type &type, const Shape &shape,
                    const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions(function.c_str(), options, convolution_options);
  const auto &target = graph.getTarget();
  const auto ipus = target.getNumIPUs(), tiles = target.getTilesPerIPU();
  const auto used_ipus = numberOf(options, "numIPUs", ipus), used_tiles = numberOf(options, "tilesPerIPU", tiles);
  if (used_ipus == 0 || used_ipus > ipus || used_tiles == 0 || used_tiles > tiles)
    fail(function, "numIPUs is " + std::to_string(used_ipus) + " and tilesPerIPU " + std::to_string(used_tiles) +
         "; expected 1 to " + std::to_string(ipus) + " and 1 to " + std::to_string(tiles), "Use what the target has");
  if (used_ipus == ipus && used_tiles == tiles) return poputil::detail::createLinear(graph, type, shape, debugContext);
  std::vector<unsigned> left;
  for (unsigned ipu = 0; ipu != used_ipus; ++ipu)
    for (unsigned tile = 0; tile != used_tiles; ++tile) left.push_back(ipu * tiles + tile);
  auto part = graph.createVirtualGraph(left);
  return poputil::detail::createLinear(part, type, shape, debugContext);
}

Tensor scalar(poplar::Graph &graph, float value, const poplar::DebugContext &debugContext) {
  return poputil::detail::constantScalar(graph, poplar::FLOAT, value, debugContext);
}

}  // namespace

std::uint64_t getFwdFlops(const ConvParams &params) { return flopsOf(params); }
std::uint64_t getBwdFlops(const ConvParams &params) { return flopsOf(params); }
std::uint64_t getWuFlops(const ConvParams &params) { return flopsOf(params); }

Tensor createWeights(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &debugContext,
                     const OptionFlags &options, PlanningCache *) {
  return createMapped("poplin::createWeights", graph, params.inputType, weightsShape(params), debugContext, options);
}

Tensor createInput(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &debugContext,
                   const OptionFlags &options, PlanningCache *) {
  return createMapped("poplin::createInput", graph, params.inputType, inputShape(params), debugContext, options);
}

Tensor createConvOutput(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &debugContext,
                        const OptionFlags &options, PlanningCache *) {
  return createMapped("poplin::createConvOutput", graph, params.outputType, outputShape(params), debugContext, options);
}

Tensor createBiases(poplar::Graph &graph, const Tensor &activations, const poplar::DebugContext &debugContext) {
  return poputil::createBroadcastOperand(graph, activations, activations.elementType(), 1, false, debugContext);
}

Tensor createBiases(poplar::Graph &graph, const Tensor &activations, const ConvParams &,
                    const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::createBiases", options, convolution_options);
  return createBiases(graph, activations, debugContext);
}

Tensor convolution(poplar::Graph &graph, const Tensor &in, const Tensor &weights, const ConvParams &params,
                   bool transposeAndFlipWeights, Sequence &prog,
                   const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *cache) {
  const auto out = createConvOutput(graph, params, {debugContext, "convolution/Out"}, options, cache);
  convolutionWithOutput(graph, in, weights, out, params, transposeAndFlipWeights, prog, debugContext, options, cache);
  return out;
}

void convolutionWithOutput(poplar::Graph &graph, const Tensor &in, const Tensor &weights, const Tensor &out,
                           const ConvParams &params, bool transposeAndFlipWeights, Sequence &prog,
                           const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::convolution", options, convolution_options);
  const auto used = transposeAndFlipWeights ? transposeAndFlip(weights) : weights;
  checkTypes(params, in, used);
  checkShape("the input", in, inputShape(params));
  checkShape("the weights", used, weightsShape(params));
  checkShape("the output", out, outputShape(params));
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "convolution"}, {in, used}, {out},
                                  Kernel::of(runConvolution, Meetings(params)));
}

void weightsTransposeChansFlipXY(poplar::Graph &, const Tensor &weightsIn, const Tensor &weightsOut,
                                 Sequence &prog, const poplar::DebugContext &debugContext,
                                 const OptionFlags &options) {
  checkOptions("poplin::weightsTransposeChansFlipXY", options, convolution_options);
  const auto flipped = transposeAndFlip(weightsIn);
  checkShape("the output weights", weightsOut, flipped.shape());
  prog.add(poplar::program::Copy(flipped, weightsOut, false, debugContext));
}

Tensor calculateWeightDeltas(poplar::Graph &graph, const Tensor &zDeltas, const Tensor &activations,
                             const ConvParams &params, Sequence &prog,
                             const poplar::DebugContext &debugContext, const OptionFlags &options,
                             PlanningCache *cache) {
  checkTypes(params, activations, activations);
  checkShape("the input", activations, inputShape(params));
  checkShape("the output's gradient", zDeltas, outputShape(params));
  const auto out = createWeights(graph, params, {debugContext, "weightDeltas"}, options, cache);
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "weightDeltas"}, {activations, zDeltas}, {out},
                                  Kernel::of(runWeightDeltas, Meetings(params), zDeltas.elementType()));
  return out;
}

void convolutionWeightUpdate(poplar::Graph &graph, const Tensor &zDeltas, const Tensor &weights,
                             const Tensor &activations, ConvParams params, const Tensor &scale,
                             Sequence &prog, const poplar::DebugContext &debugContext,
                             const OptionFlags &options, PlanningCache *cache) {
  const auto deltas =
      calculateWeightDeltas(graph, zDeltas, activations, params, prog, debugContext, options, cache);
  popops::scaledAddTo(graph, weights, deltas, scale, prog, {debugContext, "weightUpdate"});
}

void convolutionWeightUpdate(poplar::Graph &graph, const Tensor &zDeltas, const Tensor &weights,
                             const Tensor &activations, ConvParams params, float scale,
                             Sequence &prog, const poplar::DebugContext &debugContext,
                             const OptionFlags &options, PlanningCache *cache) {
  convolutionWeightUpdate(graph, zDeltas, weights, activations, std::move(params), scalar(graph, scale, debugContext),
                          prog, debugContext, options, cache);
}

void convolutionBiasUpdate(poplar::Graph &graph, const Tensor &zDeltas, const Tensor &biases, const Tensor &scale,
                           const OptionFlags &options, Sequence &prog,
                           const poplar::DebugContext &debugContext) {
  checkOptions("poplin::convolutionBiasUpdate", options, convolution_options);
  Shape dims{0};
  for (std::size_t dim = 2; dim < zDeltas.rank(); ++dim) dims.push_back(dim);
  const poplar::DebugContext name{debugContext, "biasUpdate"};
  const auto sums = popops::reduce(graph, zDeltas, poplar::FLOAT, dims, {popops::Operation::ADD}, prog, name);
  popops::scaledAddTo(graph, biases, sums, scale, prog, name);
}

void convolutionBiasUpdate(poplar::Graph &graph, const Tensor &zDeltas, const Tensor &biases, float scale,
                           const OptionFlags &options, Sequence &prog,
                           const poplar::DebugContext &debugContext) {
  convolutionBiasUpdate(graph, zDeltas, biases, scalar(graph, scale, debugContext), options, prog, debugContext);
}

void addBias(poplar::Graph &graph, const Tensor &in, const Tensor &biases, Sequence &prog,
             const poplar::DebugContext &debugContext) {
  if (in.rank() < 2 || in.dim(1) != biases.numElements())
    fail("poplin::addBias", "the activations have the shape " + poputil::detail::describeShape(in.shape()) + " for " +
         std::to_string(biases.numElements()) + " biases", "Pass {batch, channels, field...} and a bias for each channel");
  Shape shape(in.rank(), 1);
  shape[1] = biases.numElements();
  popops::addInPlace(graph, in, biases.reshape(shape), prog, {debugContext, "addBias"});
}

}  // namespace poplin
