// Layer normalisation: group normalisation with one group.
#ifndef popnn_LayerNorm_hpp
#define popnn_LayerNorm_hpp

#include <popnn/detail/group_norm_forms.hpp>

namespace popnn {
namespace ln {

inline std::pair<poplar::Tensor, poplar::Tensor> layerNormStatistics(
    poplar::Graph &graph, const poplar::Tensor acts, float eps,
    poplar::program::Sequence &prog, bool unbiasedVarEstimate,
    bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}) {
  return gn::groupNormStatistics(graph, acts, eps, prog, 1, unbiasedVarEstimate, stableAlgo, partialsType, debugContext, options);
}

POPNN_GROUP_NORM_FORMS(layerNorm)

}  // namespace ln
}  // namespace popnn

#endif
