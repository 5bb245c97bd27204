// The kinds of non-linearity.
#ifndef popnn_NonLinearityDef_hpp
#define popnn_NonLinearityDef_hpp

namespace popnn {

enum class NonLinearityType {
  SIGMOID,
  HARD_SIGMOID,    // max(0, min(1, 0.2 x + 0.5))
  RELU,
  TANH,
  GELU,            // 0.5 x (1 + tanh(0.7978845608 x (1 + 0.044715 x^2)))
  GELU_ERF,        // 0.5 x (1 + erf(x / sqrt(2)))
  SWISH,           // x * sigmoid(x)
  SOFTMAX,         // over the last dimension
  SOFTMAX_STABLE,  // the same: exponents are always relative to the largest
  SOFTMAX_SCALED   // the same, times a factor that is returned too
};

}  // namespace popnn

#endif
