// Computes dilated sizes, input and kernel indices, and the parameters of a convolution's gradient.
#ifndef poplin_ConvUtil_hpp
#define poplin_ConvUtil_hpp

#include <poplin/ConvParams.hpp>

namespace poplin {

// (size - 1) * dilation + 1, or 0
unsigned getDilatedSize(unsigned size, unsigned dilation);

// The element that a kernel's index, or an input's, meets for an output's index; ~0u if there is none.
unsigned getInputIndex(unsigned dim, unsigned outputIndex, unsigned kernelIndex, const ConvParams &params);
unsigned getKernelIndex(unsigned dim, unsigned outputIndex, unsigned inputIndex, const ConvParams &params);

// The convolution that computes the gradient of the input from that of the output, with weights transposed and flipped.
ConvParams getGradientParams(const ConvParams &params);

}  // namespace poplin

#endif
