// Non-linear functions and their gradients, computed in float. Results have the mapping of their operand.
#ifndef popnn_NonLinearity_hpp
#define popnn_NonLinearity_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <popnn/NonLinearityDef.hpp>

namespace popnn {

// SOFTMAX_SCALED needs the form with `nonLinearityScaling`, which is set to the factor of the result: 16384 for half,
// else 1.
poplar::Tensor nonLinearity(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor t,
                            poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});
poplar::Tensor nonLinearity(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor t,
                            float &nonLinearityScaling, poplar::program::Sequence &prog,
                            const poplar::DebugContext &debugContext = {});
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor t,
                         poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor t,
                         float &nonLinearityScaling, poplar::program::Sequence &prog,
                         const poplar::DebugContext &debugContext = {});

// The gradient of the operand. `act` is the result; for GELU, GELU_ERF and SWISH it is the operand.
poplar::Tensor nonLinearityInputGradient(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor act,
                                         poplar::Tensor outGradient, poplar::program::Sequence &prog,
                                         const poplar::DebugContext &debugContext = {});

// The same in a compute set that the caller runs.
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor t,
                         poplar::ComputeSet &cs, const poplar::DebugContext &debugContext = {});
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor t,
                         float &nonLinearityScaling, poplar::ComputeSet &cs,
                         const poplar::DebugContext &debugContext = {});
poplar::Tensor nonLinearityInputGradient(poplar::Graph &graph, NonLinearityType nonLinearityType, poplar::Tensor act,
                                         poplar::Tensor outGradient, poplar::ComputeSet &cs,
                                         const poplar::DebugContext &debugContext = {});

#define TF_IPU_SHIM_NON_LINEARITY(name, TYPE)                                                                  \
  inline poplar::Tensor name(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog,          \
                             const poplar::DebugContext &debugContext = {}) {                                  \
    return nonLinearity(graph, NonLinearityType::TYPE, t, prog, debugContext);                                 \
  }                                                                                                            \
  inline poplar::Tensor name(poplar::Graph &graph, poplar::Tensor t, float &nonLinearityScaling,               \
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {}) { \
    return nonLinearity(graph, NonLinearityType::TYPE, t, nonLinearityScaling, prog, debugContext);            \
  }                                                                                                            \
  inline void name##InPlace(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog,           \
                            const poplar::DebugContext &debugContext = {}) {                                   \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, prog, debugContext);                                 \
  }                                                                                                            \
  inline void name##InPlace(poplar::Graph &graph, poplar::Tensor t, float &nonLinearityScaling,                \
                            poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {}) {  \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, nonLinearityScaling, prog, debugContext);            \
  }

TF_IPU_SHIM_NON_LINEARITY(sigmoid, SIGMOID)
TF_IPU_SHIM_NON_LINEARITY(relu, RELU)
TF_IPU_SHIM_NON_LINEARITY(tanh, TANH)
TF_IPU_SHIM_NON_LINEARITY(gelu, GELU)
TF_IPU_SHIM_NON_LINEARITY(geluErf, GELU_ERF)
TF_IPU_SHIM_NON_LINEARITY(swish, SWISH)
TF_IPU_SHIM_NON_LINEARITY(softmax, SOFTMAX)
TF_IPU_SHIM_NON_LINEARITY(softmaxStable, SOFTMAX_STABLE)
TF_IPU_SHIM_NON_LINEARITY(scaledSoftmaxStable, SOFTMAX_SCALED)
#undef TF_IPU_SHIM_NON_LINEARITY

}  // namespace popnn

#endif
