// The products of a fully connected layer.
#ifndef poplin_FullyConnected_hpp
#define poplin_FullyConnected_hpp

#include <poplar/OptionFlags.hpp>
#include <poplin/MatMul.hpp>
#include <utility>
#include <vector>

namespace poplin {
namespace fc {

struct FullyConnectedParams {
  std::size_t numGroups;
  std::size_t batchSize;
  std::size_t inputSize;
  std::size_t outputSize;
};

// The product of the forward pass and, unless `inferenceOnly`, those of the two gradients, with the pass in its options.
std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(FullyConnectedParams parameters,
                                                                                     poplar::OptionFlags matmulOptions,
                                                                                     poplar::Type type,
                                                                                     bool inferenceOnly);

}  // namespace fc
}  // namespace poplin

#endif
