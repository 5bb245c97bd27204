// Instance normalisation: group normalisation with one group for each channel.
#ifndef popnn_InstanceNorm_hpp
#define popnn_InstanceNorm_hpp

#include <popnn/detail/group_norm_forms.hpp>

namespace popnn {
namespace in {

inline std::pair<poplar::Tensor, poplar::Tensor> instanceNormStatistics(
    poplar::Graph &graph, const poplar::Tensor acts, float eps,
    poplar::program::Sequence &prog, bool unbiasedVarEstimate,
    bool stableAlgo, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}) {
  return gn::groupNormStatistics(graph, acts, eps, prog, static_cast<unsigned>(acts.dim(1)), unbiasedVarEstimate, stableAlgo, partialsType, debugContext, options);
}

POPNN_GROUP_NORM_FORMS(instanceNorm)

}  // namespace in
}  // namespace popnn

#endif
