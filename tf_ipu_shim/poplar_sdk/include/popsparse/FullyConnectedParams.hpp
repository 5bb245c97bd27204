// The sizes of a fully connected layer with sparse weights, and the maximum number of non-zero weights.
#ifndef popsparse_FullyConnectedParams_hpp
#define popsparse_FullyConnectedParams_hpp

#include <iosfwd>
#include <popsparse/SparsityParams.hpp>
#include <tuple>

namespace popsparse {
namespace dynamic {

class FullyConnectedParams {
  SparsityParams sparsity_;
  double ratio_ = 0;
  std::size_t batch_size_ = 0, groups_ = 1, inputs_ = 0, outputs_ = 0;
  auto fields() const { return std::tie(sparsity_, ratio_, batch_size_, groups_, inputs_, outputs_); }

 public:
  // Channels are those of all groups.
  static FullyConnectedParams createWithNzRatio(const SparsityParams &sparsityParams, double nzRatio,
                                                std::size_t batchSize, std::size_t numGroups,
                                                std::size_t inputChannels, std::size_t outputChannels);
  static FullyConnectedParams createWithNumNonZeroValues(const SparsityParams &sparsityParams,
                                                         std::size_t numNonZeroElems, std::size_t batchSize,
                                                         std::size_t numGroups, std::size_t inputChannels,
                                                         std::size_t outputChannels);

  std::size_t getBatchSize() const { return batch_size_; }
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getInputChannels() const { return groups_ * inputs_; }
  std::size_t getOutputChannels() const { return groups_ * outputs_; }
  std::size_t getInputChannelsPerGroup() const { return inputs_; }
  std::size_t getOutputChannelsPerGroup() const { return outputs_; }
  const SparsityParams &getSparsityParams() const { return sparsity_; }
  double getNzRatio() const { return ratio_; }
  std::size_t getNumNonZeroValues() const;

  friend bool operator<(const FullyConnectedParams &a, const FullyConnectedParams &b) {
    return a.fields() < b.fields();
  }
  friend bool operator==(const FullyConnectedParams &a, const FullyConnectedParams &b) {
    return a.fields() == b.fields();
  }
  friend bool operator!=(const FullyConnectedParams &a, const FullyConnectedParams &b) { return !(a == b); }
};
std::ostream &operator<<(std::ostream &os, const FullyConnectedParams &params);

}  // namespace dynamic
}  // namespace popsparse

#endif
