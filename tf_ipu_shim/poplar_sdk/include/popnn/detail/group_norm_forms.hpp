// A macro that defines the functions of layer and instance normalisation as group normalisation.
#ifndef popnn_detail_group_norm_forms_hpp
#define popnn_detail_group_norm_forms_hpp

#include <popnn/GroupNorm.hpp>

#define POPNN_GROUP_NORM_FORMS(prefix)                                                                                 \
  inline poplar::Tensor prefix##Whiten(                                                                                \
      poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean,                                    \
      const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,                                                \
      const poplar::DebugContext &debugContext = {},                                                                   \
      const poplar::OptionFlags &options = {}) {                                                                       \
    return gn::groupNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);                             \
  }                                                                                                                    \
                                                                                                                       \
  inline std::pair<poplar::Tensor, poplar::Tensor> prefix##alise(                                                      \
      poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gamma,                                   \
      const poplar::Tensor &beta, const poplar::Tensor &mean, const poplar::Tensor &invStdDev,                         \
      poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},                                  \
      const poplar::OptionFlags &options = {}) {                                                                       \
    return gn::groupNormalise(graph, acts, gamma, beta, mean, invStdDev, prog, debugContext, options);                 \
  }                                                                                                                    \
                                                                                                                       \
  inline std::pair<poplar::Tensor, poplar::Tensor> prefix##ParamGradients(                                             \
      poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,                                 \
      const poplar::Tensor &mean, const poplar::Tensor &iStdDev, poplar::program::Sequence &prog,                      \
      const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &debugContext = {},                 \
      const poplar::OptionFlags &options = {}) {                                                                       \
    return gn::groupNormParamGradients(graph, acts, gradsIn, mean, iStdDev, prog, partialsType, debugContext, options); \
  }                                                                                                                    \
                                                                                                                       \
  inline std::pair<poplar::Tensor, poplar::Tensor> prefix##ParamGradients(                                             \
      poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,                         \
      poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,                               \
      const poplar::DebugContext &debugContext = {},                                                                   \
      const poplar::OptionFlags &options = {}) {                                                                       \
    return gn::groupNormParamGradients(graph, actsWhitened, gradsIn, prog, partialsType, debugContext, options);       \
  }                                                                                                                    \
                                                                                                                       \
  inline poplar::Tensor prefix##Gradients(                                                                             \
      poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,                                 \
      const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,                        \
      poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,                               \
      const poplar::DebugContext &debugContext = {},                                                                   \
      const poplar::OptionFlags &options = {}) {                                                                       \
    return gn::groupNormGradients(graph, acts, gradsIn, mean, invStdDev, gamma, prog, partialsType, debugContext, options); \
  }                                                                                                                    \
                                                                                                                       \
  inline poplar::Tensor prefix##Gradients(                                                                             \
      poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,                         \
      const poplar::Tensor &invStdDev, const poplar::Tensor &gamma, poplar::program::Sequence &prog,                   \
      const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &debugContext = {},                 \
      const poplar::OptionFlags &options = {}) {                                                                       \
    return gn::groupNormGradients(graph, actsWhitened, gradsIn, invStdDev, gamma, prog, partialsType, debugContext, options); \
  }                                                                                                                    \
                                                                                                                       \
  inline void prefix##ParamUpdate(                                                                                     \
      poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,                         \
      float scale, poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,                       \
      const poplar::DebugContext &debugContext = {},                                                                   \
      const poplar::OptionFlags &options = {}) {                                                                       \
    gn::groupNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, debugContext, options);           \
  }                                                                                                                    \
                                                                                                                       \
  inline void prefix##ParamUpdate(                                                                                     \
      poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,                         \
      const poplar::Tensor &scale, poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,       \
      const poplar::DebugContext &debugContext = {},                                                                   \
      const poplar::OptionFlags &options = {}) {                                                                       \
    gn::groupNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, debugContext, options);           \
  }

#endif
