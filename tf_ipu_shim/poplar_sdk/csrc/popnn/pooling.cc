// Pools windows of a field, and computes the gradients; sums and averages are accumulated in double.
#include <limits>
#include <ostream>
#include <popnn/Pooling.hpp>

#include "poputil/library.hpp"

namespace popnn::pooling {

using namespace poputil::library;

POPLAR_FIELDS(PoolParams, part.poolingType, part.inputFieldShape, part.kernelShape, part.stride,
              part.inputTruncationOrPaddingLower, part.inputTruncationOrPaddingUpper, part.numChannels, part.batchSize,
              part.dType)

namespace {

void check(const PoolParams &params) {
  const auto rank = params.inputFieldShape.size();
  if (params.kernelShape.size() != rank || params.stride.size() != rank ||
      params.inputTruncationOrPaddingLower.size() != rank || params.inputTruncationOrPaddingUpper.size() != rank)
    fail("popnn::pooling", "the parameters have different numbers of dimensions", "Pass a value for each dimension");
  for (const auto *sizes : {&params.inputFieldShape, &params.kernelShape})
    for (const auto size : *sizes)
      if ((size == 0 && sizes == &params.kernelShape) || size > std::numeric_limits<std::int32_t>::max())
        fail("popnn::pooling", "the field is " + poputil::detail::describeShape(params.inputFieldShape) + " and the window " +
             poputil::detail::describeShape(params.kernelShape), "Pass a window of at least one element");
  for (const auto stride : params.stride)
    if (stride == 0) fail("popnn::pooling", "a stride is 0", "Pass at least 1");
}

void checkTensor(const char *what, const PoolParams &params, const Tensor &tensor, const Shape &field) {
  Shape shape{params.batchSize, params.numChannels};
  shape.insert(shape.end(), field.begin(), field.end());
  if (tensor.shape() != shape || tensor.elementType() != params.dType || !poputil::detail::isFloating(params.dType))
    fail("popnn::pooling", std::string(what) + " has the shape " + poputil::detail::describeShape(tensor.shape()) +
         " and the type " + poputil::detail::typeName(tensor.elementType()) + "; expected " +
         poputil::detail::describeShape(shape) + " and " + poputil::detail::typeName(params.dType) +
         ", float or half", "Pass tensors that fit the PoolParams");
}

// Calls `visit` with the offset of each element of the window of output `out` of one channel; padding is left out.
template <class Visit>
void forWindow(const PoolParams &params, const Shape &output, std::size_t out, Visit visit) {
  const auto rank = output.size();
  Shape position(rank);
  for (std::size_t dim = rank, rest = out; dim-- > 0; rest /= output[dim]) position[dim] = rest % output[dim];
  for (std::size_t k = 0, all = poputil::detail::product(params.kernelShape); k != all; ++k) {
    std::size_t offset = 0, inner = 1, rest = k;
    bool inside = true;
    for (std::size_t dim = rank; dim-- > 0; rest /= params.kernelShape[dim]) {
      const auto index = static_cast<std::ptrdiff_t>(position[dim] * params.stride[dim] + rest % params.kernelShape[dim]) -
                         params.inputTruncationOrPaddingLower[dim];
      const auto size = static_cast<std::ptrdiff_t>(params.inputFieldShape[dim]);
      // Truncated elements lie outside, as padding does.
      const auto last = size + std::min(params.inputTruncationOrPaddingUpper[dim], 0);
      inside = inside && index >= 0 && index < last;
      offset += static_cast<std::size_t>(index) * inner;
      inner *= params.inputFieldShape[dim];
    }
    if (inside) visit(offset);
  }
}

Tensor createField(poplar::Graph &graph, const PoolParams &params, const Shape &field,
                   const poplar::DebugContext &debugContext) {
  Shape shape{params.batchSize, params.numChannels};
  shape.insert(shape.end(), field.begin(), field.end());
  return poputil::detail::createLinear(graph, params.dType, shape, debugContext);
}

float poolWindow(const PoolParams &params, const Shape &output, const float *image, std::size_t out) {
  double sum = 0;
  std::size_t count = 0;
  float largest = -std::numeric_limits<float>::infinity();
  forWindow(params, output, out, [&](std::size_t offset) {
    sum += image[offset];
    largest = std::max(largest, image[offset]);
    ++count;
  });
  if (params.poolingType == PoolingType::MAX) return largest;
  return static_cast<float>(params.poolingType == PoolingType::SUM || count == 0 ? sum : sum / count);
}

// The images: one for each channel of each element of the batch.
std::size_t imagesOf(const PoolParams &params) { return params.batchSize * params.numChannels; }

void addWindowGradient(const PoolParams &params, const Shape &output, std::size_t out, float value, double *gradient) {
  std::size_t count = 0;
  forWindow(params, output, out, [&](std::size_t) { ++count; });
  const double share = params.poolingType == PoolingType::AVG ? value / static_cast<double>(count) : value;
  forWindow(params, output, out, [&](std::size_t offset) { gradient[offset] += share; });
}

void addMaxGradient(const PoolParams &params, const Shape &output, std::size_t out, float value, const float *image,
                    float largest, bool scaled, double *gradient) {
  std::size_t count = 0;
  forWindow(params, output, out, [&](std::size_t offset) { count += image[offset] == largest; });
  const double share = scaled && count != 0 ? value / static_cast<double>(count) : value;
  forWindow(params, output, out, [&](std::size_t offset) {
    if (image[offset] == largest) gradient[offset] += share;
  });
}

}  // namespace

std::vector<std::size_t> PoolParams::getOutputFieldShape() const {
  check(*this);
  Shape shape;
  for (std::size_t dim = 0; dim != inputFieldShape.size(); ++dim) {
    const auto size = static_cast<std::ptrdiff_t>(inputFieldShape[dim]) + inputTruncationOrPaddingLower[dim] +
                      inputTruncationOrPaddingUpper[dim] - static_cast<std::ptrdiff_t>(kernelShape[dim]);
    if (size < 0)
      fail("popnn::pooling", "the window is larger than dimension " + std::to_string(dim) + " of the field",
           "Pad the input");
    shape.push_back(static_cast<std::size_t>(size) / stride[dim] + 1);
  }
  return shape;
}

std::ostream &operator<<(std::ostream &os, const PoolParams &params) {
  return os << "{type=" << asString(params.poolingType) << ", field="
            << poputil::detail::describeShape(params.inputFieldShape) << ", kernel="
            << poputil::detail::describeShape(params.kernelShape) << ", channels=" << params.numChannels << ", batch="
            << params.batchSize << "}";
}

const char *asString(const PoolingType &method) {
  return method == PoolingType::MAX ? "max" : method == PoolingType::AVG ? "avg" : "sum";
}

std::vector<std::size_t> getOutputFieldShape(const PoolParams &params) { return params.getOutputFieldShape(); }

std::uint64_t getFwdFlops(const PoolParams &params) {
  const auto output = params.getOutputFieldShape();
  std::uint64_t used = 0;
  for (std::size_t out = 0; out != poputil::detail::product(output); ++out)
    forWindow(params, output, out, [&](std::size_t) { ++used; });
  return used * imagesOf(params);
}

std::uint64_t getBwdFlops(const PoolParams &params) {
  return params.poolingType == PoolingType::MAX ? 0 : getFwdFlops(params);
}

Tensor pool(poplar::Graph &graph, const PoolParams &params, const Tensor &in, Sequence &prog,
            const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popnn::pooling::pool", options, pooling_options);
  const auto output = params.getOutputFieldShape();
  checkTensor("the input", params, in, params.inputFieldShape);
  const auto out = createField(graph, params, output, {debugContext, "pool/Out"});
  const auto outputs = poputil::detail::product(output), inputs = poputil::detail::product(params.inputFieldShape);
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "pool"}, {in}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &params, const auto &output, const auto &inputs,
                    const auto &outputs) {
        const auto images = poputil::detail::readFloats(params.dType, arguments.inputs[0], imagesOf(params) * inputs);
        std::vector<float> result(imagesOf(params) * outputs);
        poplar::detail::parallelFor(imagesOf(params), 1, [&](std::size_t begin, std::size_t end) {
          for (; begin != end; ++begin)
            for (std::size_t i = 0; i != outputs; ++i)
              result[begin * outputs + i] = poolWindow(params, output, images.data() + begin * inputs, i);
        });
        poputil::detail::writeFloats(params.dType, result.data(), arguments.outputs[0], result.size());
      }, params, output, inputs, outputs));
  return out;
}

Tensor poolInputGradient(poplar::Graph &graph, const PoolParams &params, const Tensor &in, const Tensor &pooled,
                         const Tensor &pooledGradient, bool useScaledGradient, Sequence &prog,
                         const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popnn::pooling::poolInputGradient", options, pooling_options);
  if (params.poolingType != PoolingType::MAX)
    return poolInputGradient(graph, params, 1, pooledGradient, prog, debugContext, options);
  const auto output = params.getOutputFieldShape();
  checkTensor("the input", params, in, params.inputFieldShape);
  checkTensor("the pooled tensor", params, pooled, output);
  checkTensor("the gradient", params, pooledGradient, output);
  const auto out = createField(graph, params, params.inputFieldShape, {debugContext, "poolGradient/Out"});
  const auto outputs = poputil::detail::product(output), inputs = poputil::detail::product(params.inputFieldShape);
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "poolGradient"}, {in, pooled, pooledGradient}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &params, const auto &output, const auto &inputs,
                    const auto &outputs, const auto &useScaledGradient) {
        const auto count = imagesOf(params);
        const auto images = poputil::detail::readFloats(params.dType, arguments.inputs[0], count * inputs);
        const auto largest = poputil::detail::readFloats(params.dType, arguments.inputs[1], count * outputs);
        const auto given = poputil::detail::readFloats(params.dType, arguments.inputs[2], count * outputs);
        std::vector<double> gradient(count * inputs);
        for (std::size_t i = 0; i != count * outputs; ++i) {
          const auto image = i / outputs * inputs;
          addMaxGradient(params, output, i % outputs, given[i], images.data() + image, largest[i], useScaledGradient,
                         gradient.data() + image);
        }
        const std::vector<float> result(gradient.begin(), gradient.end());
        poputil::detail::writeFloats(params.dType, result.data(), arguments.outputs[0], result.size());
      }, params, output, inputs, outputs, useScaledGradient));
  return out;
}

Tensor poolInputGradient(poplar::Graph &graph, const PoolParams &params, const unsigned, const Tensor &pooledGradient,
                         Sequence &prog, const poplar::DebugContext &debugContext,
                         const OptionFlags &options) {
  checkOptions("popnn::pooling::poolInputGradient", options, pooling_options);
  if (params.poolingType == PoolingType::MAX)
    fail("popnn::pooling::poolInputGradient", "the pooling is MAX, whose gradient needs the input",
         "Call the form with the input and the pooled tensor");
  const auto output = params.getOutputFieldShape();
  checkTensor("the gradient", params, pooledGradient, output);
  const auto out = createField(graph, params, params.inputFieldShape, {debugContext, "poolGradient/Out"});
  const auto outputs = poputil::detail::product(output), inputs = poputil::detail::product(params.inputFieldShape);
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "poolGradient"}, {pooledGradient}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &params, const auto &output, const auto &inputs,
                    const auto &outputs) {
        const auto count = imagesOf(params);
        const auto given = poputil::detail::readFloats(params.dType, arguments.inputs[0], count * outputs);
        std::vector<double> gradient(count * inputs);
        for (std::size_t i = 0; i != count * outputs; ++i)
          addWindowGradient(params, output, i % outputs, given[i], gradient.data() + i / outputs * inputs);
        const std::vector<float> result(gradient.begin(), gradient.end());
        poputil::detail::writeFloats(params.dType, result.data(), arguments.outputs[0], result.size());
      }, params, output, inputs, outputs));
  return out;
}

}  // namespace popnn::pooling
