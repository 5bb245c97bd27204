// Group and batch normalisation: groups of channels of one element of the batch are normalised as one channel.
#include <popnn/BatchNorm.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/Norms.hpp>
#include <poplin/Norms.hpp>
#include <popops/ScaledAdd.hpp>

#include "poputil/library.hpp"

namespace popnn {

using namespace poputil::library;

namespace {

// The channels that are normalised together: each itself, or groups of those of one element of the batch.
class Channels {
 public:
  Channels() = default;
  Channels(std::size_t groups, bool strided) : groups_(groups), strided_(strided) {}

  // Activations {batch, channels, field...}, or their view {1, batch * groups, the group's elements}.
  Tensor view(const Tensor &acts) const {
    if (groups_ == 0) return acts;
    const auto split = strided_ ? acts.reshape({acts.dim(0), size(acts), groups_, field(acts)}).dimShuffle({0, 2, 1, 3})
                                : acts.reshape({acts.dim(0), groups_, size(acts), field(acts)});
    return split.reshape({1, acts.dim(0) * groups_, size(acts) * field(acts)});
  }

  // A view like view()'s, in the order of the activations again.
  Tensor restore(const Tensor &view, const Tensor &acts) const {
    if (groups_ == 0) return view;
    const auto split = view.reshape({acts.dim(0), groups_, size(acts), field(acts)});
    return (strided_ ? split.dimShuffle({0, 2, 1, 3}) : split).reshape(acts.shape());
  }

 private:
  std::size_t size(const Tensor &acts) const { return acts.dim(1) / groups_; }
  static std::size_t field(const Tensor &acts) {
    return acts.numElements() / std::max<std::size_t>(acts.dim(0) * acts.dim(1), 1);
  }

  std::size_t groups_ = 0;
  bool strided_ = false;
};

Channels groupsOf(const std::string &function, const Tensor &acts, std::size_t groups, const OptionFlags &options) {
  checkOptions(function.c_str(), options, group_norm_options);
  const auto shape = acts.shape();
  if (shape.size() < 2 || groups == 0 || shape[1] % groups != 0)
    fail(function, "the activations have the shape " + poputil::detail::describeShape(shape) + " for " +
         std::to_string(groups) + " groups", "Pass {batch, channels, field...} with a multiple of the groups");
  return {groups, valueOf(options, "groupNormStridedChannelGrouping", "true") == "true"};
}

// The channels of batch normalisation, and of group normalisation with these statistics.
Channels batchNormChannels(const std::string &function, const Tensor &, const Tensor &, const OptionFlags &options) {
  checkOptions(function.c_str(), options, batch_norm_options);
  return {};
}

Channels groupNormChannels(const std::string &function, const Tensor &acts, const Tensor &statistics,
                           const OptionFlags &options) {
  const auto batch = acts.rank() == 0 ? 1 : std::max<std::size_t>(acts.dim(0), 1);
  return groupsOf(function, acts, statistics.numElements() / batch, options);
}

}  // namespace

// The functions of group normalisation and of batch normalisation, which differ in their channels.
#define NORM_FUNCTIONS(prefix)                                                                                         \
  Tensor prefix##Whiten(poplar::Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &invStdDev,         \
                        Sequence &prog, const poplar::DebugContext &debugContext, const OptionFlags &options) {        \
    const auto channels = prefix##Channels("popnn::" #prefix "Whiten", acts, mean, options);                           \
    return channels.restore(poplin::normWhiten(graph, channels.view(acts), mean, invStdDev, prog, debugContext), acts); \
  }                                                                                                                    \
                                                                                                                       \
  std::pair<Tensor, Tensor> prefix##alise(poplar::Graph &graph, const Tensor &acts, const Tensor &gamma,               \
                                          const Tensor &beta, const Tensor &mean, const Tensor &invStdDev,             \
                                          Sequence &prog, const poplar::DebugContext &debugContext,                    \
                                          const OptionFlags &options) {                                                \
    const auto whitened = prefix##Whiten(graph, acts, mean, invStdDev, prog, debugContext, options);                   \
    return {poplin::normalise(graph, whitened, gamma, beta, prog, debugContext), whitened};                            \
  }                                                                                                                    \
                                                                                                                       \
  std::pair<Tensor, Tensor> prefix##ParamGradients(                                                                    \
      poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean, const Tensor &iStdDev,      \
      Sequence &prog, const poplar::Type &partialsType, const poplar::DebugContext &debugContext,                      \
      const OptionFlags &options) {                                                                                    \
    const auto whitened = prefix##Whiten(graph, acts, mean, iStdDev, prog, debugContext, options);                     \
    return prefix##ParamGradients(graph, whitened, gradsIn, prog, partialsType, debugContext, options);                \
  }                                                                                                                    \
                                                                                                                       \
  std::pair<Tensor, Tensor> prefix##ParamGradients(                                                                    \
      poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn, Sequence &prog,                         \
      const poplar::Type &partialsType, const poplar::DebugContext &debugContext, const OptionFlags &options) {        \
    checkOptions("popnn::" #prefix "ParamGradients", options, group_norm_options);                                  \
    return poplin::normParamGradients(graph, actsWhitened, gradsIn, prog, partialsType, debugContext);                 \
  }                                                                                                                    \
                                                                                                                       \
  Tensor prefix##Gradients(poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean,        \
                           const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,                               \
                           const poplar::Type &partialsType, const poplar::DebugContext &debugContext,                 \
                           const OptionFlags &options) {                                                               \
    const auto whitened = prefix##Whiten(graph, acts, mean, invStdDev, prog, debugContext, options);                   \
    return prefix##Gradients(graph, whitened, gradsIn, invStdDev, gamma, prog, partialsType, debugContext, options);   \
  }                                                                                                                    \
                                                                                                                       \
  Tensor prefix##Gradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,                    \
                           const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,                               \
                           const poplar::Type &partialsType, const poplar::DebugContext &debugContext,                 \
                           const OptionFlags &options) {                                                               \
    const auto channels = prefix##Channels("popnn::" #prefix "Gradients", actsWhitened, invStdDev, options);           \
    const auto scaled = poplin::normGradients(graph, gradsIn, gamma, prog, debugContext);                              \
    const auto result =                                                                                                \
        poplin::normStatisticsGradients(graph, channels.view(actsWhitened), channels.view(scaled), invStdDev, prog,    \
                                        partialsType, debugContext);                                                   \
    return channels.restore(result, actsWhitened);                                                                     \
  }                                                                                                                    \
                                                                                                                       \
  NORM_PARAM_UPDATE(prefix, float)                                                                                     \
  NORM_PARAM_UPDATE(prefix, const Tensor &)

#define NORM_PARAM_UPDATE(prefix, Scale)                                                                               \
  void prefix##ParamUpdate(poplar::Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, Scale scale,       \
                           Tensor &gamma, Tensor &beta, Sequence &prog, const poplar::DebugContext &debugContext,      \
                           const OptionFlags &options) {                                                               \
    checkOptions("popnn::" #prefix "ParamUpdate", options, group_norm_options);                                     \
    popops::scaledAddTo(graph, gamma, gammaDelta, scale, prog, {debugContext, "gamma"});                               \
    popops::scaledAddTo(graph, beta, betaDelta, scale, prog, {debugContext, "beta"});                                  \
  }

namespace gn {

std::pair<Tensor, Tensor> groupNormStatistics(poplar::Graph &graph, const Tensor acts, float eps, Sequence &prog,
                                              unsigned numGroups, bool unbiasedVarEstimate, bool stableAlgo,
                                              const poplar::Type &partialsType,
                                              const poplar::DebugContext &debugContext, const OptionFlags &options) {
  const auto channels = groupsOf("popnn::groupNormStatistics", acts, numGroups, options);
  return poplin::normStatistics(graph, channels.view(acts), eps, prog, unbiasedVarEstimate, stableAlgo, partialsType,
                                debugContext);
}

NORM_FUNCTIONS(groupNorm)

}  // namespace gn

namespace bn {

std::pair<Tensor, Tensor> batchNormStatistics(poplar::Graph &graph, const Tensor acts, float eps, Sequence &prog,
                                              bool unbiasedVarEstimate, bool stableAlgo,
                                              const poplar::Type &partialsType,
                                              const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popnn::batchNormStatistics", options, batch_norm_options);
  return poplin::normStatistics(graph, acts, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debugContext);
}

Tensor batchNormalise(poplar::Graph &graph, const Tensor &acts, const Tensor &combinedMultiplicand,
                      const Tensor &addend, Sequence &prog, const poplar::DebugContext &debugContext,
                      const OptionFlags &options) {
  checkOptions("popnn::batchNormalise", options, batch_norm_options);
  return poplin::normalise(graph, acts, combinedMultiplicand, addend, prog, debugContext);
}

NORM_FUNCTIONS(batchNorm)

std::pair<Tensor, Tensor> distributedBatchNormStatistics(
    poplar::Graph &graph, const Tensor acts, float eps, Sequence &prog, bool unbiasedVarEstimate,
    poplin::DistributedNormReduceCallback callback, unsigned normBatchSize, bool stableAlgo,
    const poplar::Type &partialsType, const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popnn::distributedBatchNormStatistics", options, batch_norm_options);
  return poplin::distributedNormStatistics(graph, acts, eps, prog, unbiasedVarEstimate, callback, normBatchSize,
                                           stableAlgo, partialsType, debugContext);
}

Tensor distributedBatchNormGradients(poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn,
                                     const Tensor &mean, const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,
                                     poplin::DistributedNormReduceCallback callback, unsigned normBatchSize,
                                     const poplar::Type &partialsType, const poplar::DebugContext &debugContext,
                                     const OptionFlags &options) {
  const auto whitened = batchNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return distributedBatchNormGradients(graph, whitened, gradsIn, invStdDev, gamma, prog, callback, normBatchSize,
                                       partialsType, debugContext, options);
}

Tensor distributedBatchNormGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                                     const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,
                                     poplin::DistributedNormReduceCallback callback, unsigned normBatchSize,
                                     const poplar::Type &partialsType, const poplar::DebugContext &debugContext,
                                     const OptionFlags &options) {
  checkOptions("popnn::distributedBatchNormGradients", options, batch_norm_options);
  const auto scaled = poplin::normGradients(graph, gradsIn, gamma, prog, debugContext);
  return poplin::distributedNormStatisticsGradients(graph, actsWhitened, scaled, invStdDev, prog, callback,
                                                    normBatchSize, partialsType, debugContext);
}

}  // namespace bn

#undef NORM_FUNCTIONS
#undef NORM_PARAM_UPDATE

Tensor createNormGamma(poplar::Graph &graph, const Tensor &acts, const poplar::DebugContext &debugContext) {
  return poplin::createNormGamma(graph, acts, debugContext);
}

Tensor createNormBeta(poplar::Graph &graph, const Tensor &acts, const poplar::DebugContext &debugContext) {
  return poplin::createNormBeta(graph, acts, debugContext);
}

std::pair<Tensor, Tensor> createNormParams(poplar::Graph &graph, const Tensor acts,
                                           const poplar::DebugContext &debugContext) {
  return poplin::createNormParams(graph, acts, debugContext);
}

}  // namespace popnn
