// The parameters of convolutions. The input is {batch, groups * channels, field...}, the weights are {groups, output
// channels, input channels, kernel...}. Input and kernel are truncated, dilated, padded and flipped, in this order. The
// result is truncated, strided and padded.
#ifndef poplin_ConvParams_hpp
#define poplin_ConvParams_hpp

#include <cstddef>
#include <iosfwd>
#include <poplar/Type.hpp>
#include <tuple>
#include <vector>

namespace poplin {

struct ConvParams {
  struct InputTransform {
    std::vector<unsigned> truncationLower, truncationUpper;
    std::vector<unsigned> dilation;
    std::vector<unsigned> paddingLower, paddingUpper;
    std::vector<bool> flip;
    InputTransform() = default;
    // Changes nothing in `size` dimensions.
    InputTransform(const std::size_t size);
    InputTransform(std::vector<unsigned> truncationLower, std::vector<unsigned> truncationUpper,
                   std::vector<unsigned> dilation, std::vector<unsigned> paddingLower,
                   std::vector<unsigned> paddingUpper, std::vector<bool> flip);
    friend bool operator==(const InputTransform &a, const InputTransform &b);
    friend bool operator!=(const InputTransform &a, const InputTransform &b) { return !(a == b); }
    friend bool operator<(const InputTransform &a, const InputTransform &b) {
      const auto members = [](const InputTransform &t) {
        return std::tie(t.truncationLower, t.truncationUpper, t.dilation, t.paddingLower, t.paddingUpper, t.flip);
      };
      return members(a) < members(b);
    }
  };

  struct OutputTransform {
    std::vector<unsigned> truncationLower, truncationUpper;
    std::vector<unsigned> stride;
    std::vector<unsigned> paddingLower, paddingUpper;
    OutputTransform() = default;
    OutputTransform(const std::size_t size);
    OutputTransform(std::vector<unsigned> truncationLower, std::vector<unsigned> truncationUpper,
                    std::vector<unsigned> stride, std::vector<unsigned> paddingLower,
                    std::vector<unsigned> paddingUpper);
    friend bool operator==(const OutputTransform &a, const OutputTransform &b);
    friend bool operator!=(const OutputTransform &a, const OutputTransform &b) { return !(a == b); }
    friend bool operator<(const OutputTransform &a, const OutputTransform &b) {
      const auto members = [](const OutputTransform &t) {
        return std::tie(t.truncationLower, t.truncationUpper, t.stride, t.paddingLower, t.paddingUpper);
      };
      return members(a) < members(b);
    }
  };

  poplar::Type inputType;
  poplar::Type outputType;
  std::size_t batchSize = 0;
  std::vector<std::size_t> inputFieldShape;
  std::vector<std::size_t> kernelShape;
  std::size_t inputChannelsPerConvGroup = 0;
  std::size_t outputChannelsPerConvGroup = 0;
  std::size_t numConvGroups = 0;
  InputTransform inputTransform;
  InputTransform kernelTransform;
  OutputTransform outputTransform;

  ConvParams() = default;
  ConvParams(poplar::Type dataType, std::size_t batchSize, std::vector<std::size_t> inputFieldShape,
             std::vector<std::size_t> kernelShape, std::size_t inputChannels, std::size_t outputChannels,
             std::size_t numConvGroups);
  ConvParams(poplar::Type inputType, poplar::Type outputType, std::size_t batchSize,
             std::vector<std::size_t> inputFieldShape, std::vector<std::size_t> kernelShape,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t numConvGroups);
  ConvParams(poplar::Type inputType, poplar::Type outputType, std::size_t batchSize,
             std::vector<std::size_t> inputFieldShape, std::vector<std::size_t> kernelShape,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t numConvGroups,
             InputTransform inputTransform, InputTransform kernelTransform, OutputTransform outputTransform);

  // Sizes after truncation, and after the whole transform.
  unsigned getTruncatedInputSize(unsigned dim) const;
  unsigned getTruncatedKernelSize(unsigned dim) const;
  unsigned getTransformedInputSize(unsigned dim) const;
  unsigned getTransformedKernelSize(unsigned dim) const;
  // Sizes before and after the output's transform.
  std::size_t getUntransformedOutputSize(unsigned dim) const;
  std::size_t getOutputSize(unsigned dim) const;
  std::vector<std::size_t> getOutputFieldShape() const;

  std::size_t getNumOutputChansPerConvGroup() const { return outputChannelsPerConvGroup; }
  std::size_t getNumOutputChans() const { return outputChannelsPerConvGroup * numConvGroups; }
  std::size_t getInputSize(unsigned dim) const { return inputFieldShape[dim]; }
  std::size_t getNumInputChansPerConvGroup() const { return inputChannelsPerConvGroup; }
  std::size_t getNumInputChans() const { return inputChannelsPerConvGroup * numConvGroups; }
  std::size_t getNumConvGroups() const { return numConvGroups; }
  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::vector<std::size_t> getInputFieldShape() const { return inputFieldShape; }
  std::vector<std::size_t> getKernelShape() const { return kernelShape; }
  std::size_t getBatchSize() const { return batchSize; }

  // Throws poplibs_error for parameters that do not fit each other.
  void validate() const;

  friend bool operator==(const ConvParams &a, const ConvParams &b);
  friend bool operator!=(const ConvParams &a, const ConvParams &b) { return !(a == b); }
  friend bool operator<(const ConvParams &a, const ConvParams &b) {
    const auto members = [](const ConvParams &p) {
      return std::tie(p.inputType, p.outputType, p.batchSize, p.inputFieldShape, p.kernelShape,
                      p.inputChannelsPerConvGroup, p.outputChannelsPerConvGroup, p.numConvGroups, p.inputTransform,
                      p.kernelTransform, p.outputTransform);
    };
    return members(a) < members(b);
  }
};

std::ostream &operator<<(std::ostream &os, const ConvParams &params);

}  // namespace poplin

#endif
