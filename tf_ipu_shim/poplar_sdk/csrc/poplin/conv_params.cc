// Checks the parameters of convolutions, and computes sizes, indices and gradient parameters from them.
#include <ostream>
#include <poplin/ConvUtil.hpp>
#include <poputil/detail/elements.hpp>

namespace poplin {

namespace {

using poputil::detail::fail;
using Sizes = std::vector<unsigned>;

unsigned truncatedSize(const char *what, std::size_t size, const ConvParams::InputTransform &transform, unsigned dim) {
  const auto cut = transform.truncationLower[dim] + transform.truncationUpper[dim];
  if (cut > size) fail("ConvParams", std::string("the truncation of the ") + what + " is larger than its size",
                       "Truncate less");
  return static_cast<unsigned>(size - cut);
}

unsigned transformedSize(unsigned truncated, const ConvParams::InputTransform &transform, unsigned dim) {
  return getDilatedSize(truncated, transform.dilation[dim]) + transform.paddingLower[dim] + transform.paddingUpper[dim];
}

// Maps an index to the element of the transformed input or kernel; ~0u for padding or dilation.
unsigned indexBefore(unsigned index, unsigned truncated, const ConvParams::InputTransform &transform, unsigned dim) {
  if (transform.flip[dim]) index = transformedSize(truncated, transform, dim) - 1 - index;
  if (index < transform.paddingLower[dim]) return ~0u;
  index -= transform.paddingLower[dim];
  if (index % transform.dilation[dim] != 0) return ~0u;
  index /= transform.dilation[dim];
  return index < truncated ? index + transform.truncationLower[dim] : ~0u;
}

// Where an element lies after the transform; ~0u if it is cut off.
unsigned indexAfter(unsigned index, unsigned truncated, const ConvParams::InputTransform &transform, unsigned dim) {
  if (index < transform.truncationLower[dim] || index - transform.truncationLower[dim] >= truncated) return ~0u;
  index = (index - transform.truncationLower[dim]) * transform.dilation[dim] + transform.paddingLower[dim];
  return transform.flip[dim] ? transformedSize(truncated, transform, dim) - 1 - index : index;
}

// The output's index before its transform; ~0u for padding.
unsigned outputBefore(unsigned index, const ConvParams &params, unsigned dim) {
  const auto &transform = params.outputTransform;
  if (index < transform.paddingLower[dim]) return ~0u;
  index = (index - transform.paddingLower[dim]) * transform.stride[dim];
  const auto size = params.getUntransformedOutputSize(dim) - transform.truncationLower[dim] - transform.truncationUpper[dim];
  return index < size ? index + transform.truncationLower[dim] : ~0u;
}

std::ostream &operator<<(std::ostream &os, const Sizes &sizes) {
  return os << poputil::detail::describeShape({sizes.begin(), sizes.end()});
}

bool hasRank(const ConvParams::InputTransform &transform, std::size_t rank) {
  return transform.truncationLower.size() == rank && transform.truncationUpper.size() == rank &&
         transform.dilation.size() == rank && transform.paddingLower.size() == rank &&
         transform.paddingUpper.size() == rank && transform.flip.size() == rank;
}

}  // namespace

ConvParams::InputTransform::InputTransform(const std::size_t size)
    : InputTransform(Sizes(size, 0), Sizes(size, 0), Sizes(size, 1), Sizes(size, 0), Sizes(size, 0),
                     std::vector<bool>(size, false)) {}

ConvParams::InputTransform::InputTransform(Sizes truncationLower, Sizes truncationUpper, Sizes dilation,
                                           Sizes paddingLower, Sizes paddingUpper, std::vector<bool> flip)
    : truncationLower(std::move(truncationLower)), truncationUpper(std::move(truncationUpper)),
      dilation(std::move(dilation)), paddingLower(std::move(paddingLower)), paddingUpper(std::move(paddingUpper)),
      flip(std::move(flip)) {}

ConvParams::OutputTransform::OutputTransform(const std::size_t size)
    : OutputTransform(Sizes(size, 0), Sizes(size, 0), Sizes(size, 1), Sizes(size, 0), Sizes(size, 0)) {}

ConvParams::OutputTransform::OutputTransform(Sizes truncationLower, Sizes truncationUpper, Sizes stride,
                                             Sizes paddingLower, Sizes paddingUpper)
    : truncationLower(std::move(truncationLower)), truncationUpper(std::move(truncationUpper)),
      stride(std::move(stride)), paddingLower(std::move(paddingLower)), paddingUpper(std::move(paddingUpper)) {}

bool operator==(const ConvParams::InputTransform &a, const ConvParams::InputTransform &b) {
  return a.truncationLower == b.truncationLower && a.truncationUpper == b.truncationUpper &&
         a.dilation == b.dilation && a.paddingLower == b.paddingLower && a.paddingUpper == b.paddingUpper &&
         a.flip == b.flip;
}

bool operator==(const ConvParams::OutputTransform &a, const ConvParams::OutputTransform &b) {
  return a.truncationLower == b.truncationLower && a.truncationUpper == b.truncationUpper && a.stride == b.stride &&
         a.paddingLower == b.paddingLower && a.paddingUpper == b.paddingUpper;
}

bool operator==(const ConvParams &a, const ConvParams &b) {
  return a.inputType == b.inputType && a.outputType == b.outputType && a.batchSize == b.batchSize &&
         a.inputFieldShape == b.inputFieldShape && a.kernelShape == b.kernelShape &&
         a.inputChannelsPerConvGroup == b.inputChannelsPerConvGroup &&
         a.outputChannelsPerConvGroup == b.outputChannelsPerConvGroup && a.numConvGroups == b.numConvGroups &&
         a.inputTransform == b.inputTransform && a.kernelTransform == b.kernelTransform &&
         a.outputTransform == b.outputTransform;
}

ConvParams::ConvParams(poplar::Type dataType, std::size_t batchSize, std::vector<std::size_t> inputFieldShape,
                       std::vector<std::size_t> kernelShape, std::size_t inputChannels, std::size_t outputChannels,
                       std::size_t numConvGroups)
    : ConvParams(dataType, dataType, batchSize, std::move(inputFieldShape), std::move(kernelShape), inputChannels,
                 outputChannels, numConvGroups) {}

ConvParams::ConvParams(poplar::Type inputType, poplar::Type outputType, std::size_t batchSize,
                       std::vector<std::size_t> inputFieldShape, std::vector<std::size_t> kernelShape,
                       std::size_t inputChannels, std::size_t outputChannels, std::size_t numConvGroups)
    : ConvParams(inputType, outputType, batchSize, inputFieldShape, kernelShape, inputChannels, outputChannels,
                 numConvGroups, InputTransform(inputFieldShape.size()), InputTransform(inputFieldShape.size()),
                 OutputTransform(inputFieldShape.size())) {}

ConvParams::ConvParams(poplar::Type inputType, poplar::Type outputType, std::size_t batchSize,
                       std::vector<std::size_t> inputFieldShape, std::vector<std::size_t> kernelShape,
                       std::size_t inputChannels, std::size_t outputChannels, std::size_t numConvGroups,
                       InputTransform inputTransform, InputTransform kernelTransform, OutputTransform outputTransform)
    : inputType(inputType), outputType(outputType), batchSize(batchSize), inputFieldShape(std::move(inputFieldShape)),
      kernelShape(std::move(kernelShape)), inputChannelsPerConvGroup(inputChannels),
      outputChannelsPerConvGroup(outputChannels), numConvGroups(numConvGroups),
      inputTransform(std::move(inputTransform)), kernelTransform(std::move(kernelTransform)),
      outputTransform(std::move(outputTransform)) {
  validate();
}

unsigned ConvParams::getTruncatedInputSize(unsigned dim) const {
  return truncatedSize("input", inputFieldShape[dim], inputTransform, dim);
}

unsigned ConvParams::getTruncatedKernelSize(unsigned dim) const {
  return truncatedSize("kernel", kernelShape[dim], kernelTransform, dim);
}

unsigned ConvParams::getTransformedInputSize(unsigned dim) const {
  return transformedSize(getTruncatedInputSize(dim), inputTransform, dim);
}

unsigned ConvParams::getTransformedKernelSize(unsigned dim) const {
  return transformedSize(getTruncatedKernelSize(dim), kernelTransform, dim);
}

std::size_t ConvParams::getUntransformedOutputSize(unsigned dim) const {
  const auto input = getTransformedInputSize(dim), kernel = getTransformedKernelSize(dim);
  if (input < kernel)
    fail("ConvParams", "the kernel's size " + std::to_string(kernel) + " in dimension " + std::to_string(dim) +
         " is larger than the input's, " + std::to_string(input), "Pad the input");
  return input - kernel + 1;
}

std::size_t ConvParams::getOutputSize(unsigned dim) const {
  const auto size = getUntransformedOutputSize(dim);
  const auto cut = outputTransform.truncationLower[dim] + outputTransform.truncationUpper[dim];
  if (cut > size) fail("ConvParams", "the truncation of the output is larger than its size", "Truncate less");
  const auto stride = outputTransform.stride[dim];
  return (size - cut + stride - 1) / stride + outputTransform.paddingLower[dim] + outputTransform.paddingUpper[dim];
}

std::vector<std::size_t> ConvParams::getOutputFieldShape() const {
  std::vector<std::size_t> shape;
  for (unsigned dim = 0; dim != getNumFieldDims(); ++dim) shape.push_back(getOutputSize(dim));
  return shape;
}

void ConvParams::validate() const {
  const auto rank = inputFieldShape.size();
  const auto &out = outputTransform;
  if (kernelShape.size() != rank || !hasRank(inputTransform, rank) || !hasRank(kernelTransform, rank) ||
      out.truncationLower.size() != rank || out.truncationUpper.size() != rank || out.stride.size() != rank ||
      out.paddingLower.size() != rank || out.paddingUpper.size() != rank)
    fail("ConvParams", "shapes and transforms have different numbers of dimensions", "Pass a value for each dimension");
  for (unsigned dim = 0; dim != rank; ++dim) {
    if (inputTransform.dilation[dim] == 0 || kernelTransform.dilation[dim] == 0 || out.stride[dim] == 0)
      fail("ConvParams", "a dilation or stride is 0", "Pass at least 1");
    getOutputSize(dim);
  }
}

std::ostream &operator<<(std::ostream &os, const ConvParams &params) {
  const auto transform = [&os](const char *name, const ConvParams::InputTransform &t) {
    os << ", " << name << "={truncation=" << t.truncationLower << "/" << t.truncationUpper << ", dilation="
       << t.dilation << ", padding=" << t.paddingLower << "/" << t.paddingUpper << "}";
  };
  os << "{types=" << poputil::detail::typeName(params.inputType) << "->" << poputil::detail::typeName(params.outputType)
     << ", batch=" << params.batchSize << ", field=" << poputil::detail::describeShape(params.inputFieldShape)
     << ", kernel=" << poputil::detail::describeShape(params.kernelShape) << ", channels="
     << params.inputChannelsPerConvGroup << "->" << params.outputChannelsPerConvGroup << ", groups="
     << params.numConvGroups;
  transform("inputTransform", params.inputTransform);
  transform("kernelTransform", params.kernelTransform);
  return os << ", stride=" << params.outputTransform.stride << "}";
}

unsigned getDilatedSize(unsigned size, unsigned dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; }

unsigned getInputIndex(unsigned dim, unsigned outputIndex, unsigned kernelIndex, const ConvParams &params) {
  const auto output = outputBefore(outputIndex, params, dim);
  const auto kernel = indexAfter(kernelIndex, params.getTruncatedKernelSize(dim), params.kernelTransform, dim);
  if (output == ~0u || kernel == ~0u) return ~0u;
  return indexBefore(output + kernel, params.getTruncatedInputSize(dim), params.inputTransform, dim);
}

unsigned getKernelIndex(unsigned dim, unsigned outputIndex, unsigned inputIndex, const ConvParams &params) {
  for (unsigned kernel = 0; kernel != params.kernelShape[dim]; ++kernel)
    if (getInputIndex(dim, outputIndex, kernel, params) == inputIndex) return kernel;
  return ~0u;
}

ConvParams getGradientParams(const ConvParams &params) {
  const auto rank = params.getNumFieldDims();
  const auto &in = params.inputTransform, &kernel = params.kernelTransform;
  const auto &out = params.outputTransform;
  ConvParams::InputTransform gradient_in(rank), gradient_kernel(rank);
  ConvParams::OutputTransform gradient_out(rank);
  for (unsigned dim = 0; dim != rank; ++dim) {
    const auto around = params.getTransformedKernelSize(dim) - 1;
    const auto kept = params.getUntransformedOutputSize(dim) - out.truncationLower[dim] - out.truncationUpper[dim];
    const auto strided = getDilatedSize((kept + out.stride[dim] - 1) / out.stride[dim], out.stride[dim]);
    // Undoes the output's transform: padding, stride, truncation.
    gradient_in.truncationLower[dim] = out.paddingLower[dim];
    gradient_in.truncationUpper[dim] = out.paddingUpper[dim];
    gradient_in.dilation[dim] = out.stride[dim];
    gradient_in.paddingLower[dim] = out.truncationLower[dim] + around;
    gradient_in.paddingUpper[dim] = out.truncationUpper[dim] + (kept - strided) + around;
    gradient_in.flip[dim] = in.flip[dim];
    // The kernel is read backwards, so its ends change places.
    gradient_kernel.truncationLower[dim] = kernel.truncationUpper[dim];
    gradient_kernel.truncationUpper[dim] = kernel.truncationLower[dim];
    gradient_kernel.dilation[dim] = kernel.dilation[dim];
    gradient_kernel.paddingLower[dim] = kernel.paddingUpper[dim];
    gradient_kernel.paddingUpper[dim] = kernel.paddingLower[dim];
    gradient_kernel.flip[dim] = kernel.flip[dim] != in.flip[dim];
    gradient_out.truncationLower[dim] = in.paddingLower[dim];
    gradient_out.truncationUpper[dim] = in.paddingUpper[dim];
    gradient_out.stride[dim] = in.dilation[dim];
    gradient_out.paddingLower[dim] = in.truncationLower[dim];
    gradient_out.paddingUpper[dim] = in.truncationUpper[dim];
  }
  return ConvParams(params.outputType, params.inputType, params.batchSize, params.getOutputFieldShape(),
                    params.kernelShape, params.outputChannelsPerConvGroup, params.inputChannelsPerConvGroup,
                    params.numConvGroups, gradient_in, gradient_kernel, gradient_out);
}

}  // namespace poplin
