// Converts between ratios and numbers of non-zero values of sparse operands, and prints their parameters.
#include <cmath>
#include <ostream>
#include <popsparse/FullyConnectedParams.hpp>
#include <popsparse/MatMulParams.hpp>

namespace popsparse {
namespace dynamic {

namespace {

std::size_t countOf(double ratio, std::size_t elements) {
  return static_cast<std::size_t>(std::llround(ratio * static_cast<double>(elements)));
}

double ratioOf(std::size_t count, std::size_t elements) {
  return elements == 0 ? 0 : static_cast<double>(count) / static_cast<double>(elements);
}

}  // namespace

std::ostream &operator<<(std::ostream &os, const SparsityType &type) {
  return os << (type == SparsityType::Element ? "Element" : "Block");
}

std::ostream &operator<<(std::ostream &os, const SparsityStructure &) { return os << "Unstructured"; }

std::ostream &operator<<(std::ostream &os, const SparsityParams &params) {
  return os << "{type: " << params.type << ", structure: " << params.structure << ", block: {"
            << params.blockDimensions[0] << ',' << params.blockDimensions[1] << "}}";
}

FullyConnectedParams FullyConnectedParams::createWithNzRatio(const SparsityParams &sparsityParams, double nzRatio,
                                                             std::size_t batchSize, std::size_t numGroups,
                                                             std::size_t inputChannels, std::size_t outputChannels) {
  FullyConnectedParams params;
  params.sparsity_ = sparsityParams;
  params.ratio_ = nzRatio;
  params.batch_size_ = batchSize;
  params.groups_ = numGroups;
  params.inputs_ = numGroups == 0 ? 0 : inputChannels / numGroups;
  params.outputs_ = numGroups == 0 ? 0 : outputChannels / numGroups;
  return params;
}

FullyConnectedParams FullyConnectedParams::createWithNumNonZeroValues(
    const SparsityParams &sparsityParams, std::size_t numNonZeroElems, std::size_t batchSize, std::size_t numGroups,
    std::size_t inputChannels, std::size_t outputChannels) {
  auto params = createWithNzRatio(sparsityParams, 0, batchSize, numGroups, inputChannels, outputChannels);
  params.ratio_ = ratioOf(numNonZeroElems, numGroups * params.inputs_ * params.outputs_);
  return params;
}

std::size_t FullyConnectedParams::getNumNonZeroValues() const { return countOf(ratio_, groups_ * inputs_ * outputs_); }

std::ostream &operator<<(std::ostream &os, const FullyConnectedParams &params) {
  return os << "{sparsity: " << params.getSparsityParams() << ", nzRatio: " << params.getNzRatio()
            << ", batchSize: " << params.getBatchSize() << ", numGroups: " << params.getNumGroups()
            << ", inputChannels: " << params.getInputChannels() << ", outputChannels: " << params.getOutputChannels()
            << '}';
}

MatMulParams MatMulParams::createWithNzRatio(const SparsityParams &sparsityParams, double nzRatio, std::size_t groups,
                                             std::size_t m, std::size_t k, std::size_t n) {
  MatMulParams params;
  params.sparsity_ = sparsityParams;
  params.ratio_ = nzRatio;
  params.groups_ = groups;
  params.m_ = m;
  params.k_ = k;
  params.n_ = n;
  return params;
}

MatMulParams MatMulParams::createWithNumNonZeroValues(const SparsityParams &sparsityParams,
                                                      std::size_t numNonZeroElems, std::size_t groups, std::size_t m,
                                                      std::size_t k, std::size_t n) {
  return createWithNzRatio(sparsityParams, ratioOf(numNonZeroElems, groups * m * k), groups, m, k, n);
}

std::size_t MatMulParams::getNumNonZeroValues() const { return countOf(ratio_, groups_ * m_ * k_); }

std::ostream &operator<<(std::ostream &os, const MatMulParams &params) {
  return os << "{sparsity: " << params.getSparsityParams() << ", nzRatio: " << params.getNzRatio()
            << ", groups: " << params.getNumGroups() << ", m: " << params.getM() << ", k: " << params.getK()
            << ", n: " << params.getN() << '}';
}

}  // namespace dynamic

namespace static_ {

MatMulParams MatMulParams::createForSparseDense(std::size_t groups, std::size_t m, std::size_t k, std::size_t n) {
  MatMulParams params;
  params.groups_ = groups;
  params.m_ = m;
  params.k_ = k;
  params.n_ = n;
  return params;
}

MatMulParams MatMulParams::createForDenseSparse(std::size_t groups, std::size_t n, std::size_t k, std::size_t m) {
  auto params = createForSparseDense(groups, m, k, n);
  params.transposed_ = true;
  return params;
}

std::ostream &operator<<(std::ostream &os, const MatMulParams &params) {
  return os << "{groups: " << params.getNumGroups() << ", m: " << params.getM() << ", k: " << params.getK()
            << ", n: " << params.getN() << ", transposed: " << params.isTransposed() << '}';
}

}  // namespace static_
}  // namespace popsparse
