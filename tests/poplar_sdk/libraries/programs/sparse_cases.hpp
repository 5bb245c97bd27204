// Cases of popsparse.
#pragma once

#include <popsparse/Embedding.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/MatMul.hpp>
#include <popsparse/SparsePartitioner.hpp>
#include <popsparse/experimental/BlockSparseMatMul.hpp>

#include "cases.hpp"

// A matrix {24, 16} of blocks {4, 2}, in an order that is not sorted.
inline popsparse::COOMatrix<float> sparseMatrix(Case &c) {
  const std::vector<std::size_t> rows{20, 0, 8, 8, 4}, columns{14, 6, 10, 0, 2};
  std::vector<float> values(rows.size() * 8);
  for (std::size_t i = 0; i != values.size(); ++i) values[i] = float(i % 7) / 4 - 0.5f;
  const auto asData = [&](const std::string &name, const auto &numbers) {
    c.data(name, FLOAT, {numbers.size()}, std::vector<double>(numbers.begin(), numbers.end()));
  };
  asData("rows", rows);
  asData("columns", columns);
  asData("values", values);
  return {24, 16, values, columns, rows, {4, 2}};
}

// Writes numbers of the host, which the test reads as an input of the case.
template <class Numbers>
Tensor numbers(Case &c, const std::string &name, const Type &type, const Numbers &values) {
  return c.data(name, type, {values.size()}, std::vector<double>(values.begin(), values.end()));
}

inline popsparse::dynamic::SparsityParams blocks() {
  using namespace popsparse::dynamic;
  return {SparsityType::Block, SparsityStructure::Unstructured, {4, 2}};
}

template <class Partitioner, class Data>
void recordFormats(Case &c, const Partitioner &partitioner, const Data &data) {
  const auto coo = partitioner.sparsityDataImplToCOOMatrix(data);
  const auto csr = partitioner.sparsityDataImplToCSRMatrix(data);
  const auto csc = partitioner.sparsityDataImplToCSCMatrix(data);
  const auto record = [&](const std::string &name, const auto &matrix) {
    numbers(c, name + " rows", FLOAT, matrix.rowIndices);
    numbers(c, name + " columns", FLOAT, matrix.columnIndices);
    numbers(c, name + " values", FLOAT, matrix.nzValues);
  };
  record("coo", coo);
  record("csr", csr);
  record("csc", csc);
  numbers(c, "from csr", FLOAT, partitioner.createSparsityDataImpl(csr).nzValues);
  numbers(c, "from csc", FLOAT, partitioner.createSparsityDataImpl(csc).nzValues);
}

inline void fullyConnectedCase(Case &c, const Type &type) {
  using namespace popsparse::dynamic;
  const auto matrix = sparseMatrix(c);
  const auto params = FullyConnectedParams::createWithNzRatio(blocks(), 8.0 / 48, 5, 1, 16, 24);
  const Partitioner<float> partitioner(params, type, c.graph.getTarget(), {});
  const auto data = partitioner.createSparsityDataImpl(matrix);
  recordFormats(c, partitioner, data);
  const auto weights = createFullyConnectedWeights(c.graph, type, params);
  c.prog.add(program::Copy(numbers(c, "meta", UNSIGNED_SHORT, data.metaInfo), weights.getMetaInfoTensor()));
  c.prog.add(program::Copy(numbers(c, "stored", type, data.nzValues), weights.getNzValuesTensor()));
  const auto x = c.input("x", type, {5, 16}), g = c.input("g", type, {5, 24});
  const auto slices = c.input("slices", type, {4, 16});
  const auto indices = c.data("indices", UNSIGNED_INT, {4}, {9, 30, 9, 21}), scale = c.data("scale", FLOAT, {}, {0.5});
  c.output("forward", fullyConnectedFwd(c.graph, weights, x, params, c.prog));
  c.output("inputs", fullyConnectedGradA(c.graph, weights, g, params, c.prog));
  c.output("weights", fullyConnectedSparseGradW(c.graph, weights.getMetaInfoTensor(), g, x, params, c.prog));
  c.output("slice", embeddingSlice(c.graph, weights, indices, c.prog, params));
  embeddingUpdateAdd(c.graph, weights, slices, indices, scale, c.prog, params);
  c.output("updated", weights.getNzValuesTensor());
  const auto few = FullyConnectedParams::createWithNumNonZeroValues(blocks(), 32, 5, 1, 16, 24);
  c.error("capacity", [&] { Partitioner<float>(few, type, c.graph.getTarget(), {}).createSparsityDataImpl(matrix); });
  c.error("meta", [&] { fullyConnectedFwd(c.graph, weights, x, few, c.prog); });
  const auto groups = FullyConnectedParams::createWithNzRatio(blocks(), 0.5, 5, 2, 32, 48);
  c.error("groups", [&] { createFullyConnectedWeights(c.graph, type, groups); });
  auto outside = matrix;
  outside.rowIndices[0] = 24;
  c.error("outside", [&] { partitioner.createSparsityDataImpl(outside); });
  auto fewer = matrix;
  fewer.columnIndices.pop_back();
  c.error("indices", [&] { partitioner.createSparsityDataImpl(fewer); });
}

inline void sparseMatMulCase(Case &c) {
  const auto matrix = sparseMatrix(c);
  const auto b = c.input("b", FLOAT, {1, 16, 3}), d = c.input("d", FLOAT, {1, 24, 3});
  const auto left = c.input("left", FLOAT, {1, 3, 24}), right = c.input("right", FLOAT, {1, 3, 16});
  {
    using namespace popsparse::dynamic;
    const auto params = MatMulParams::createWithNumNonZeroValues(blocks(), 64, 1, 24, 16, 3);
    const auto data = Partitioner<float>(params, FLOAT, c.graph.getTarget(), {}).createSparsityDataImpl(matrix);
    const auto lhs = createSparseDenseMatMulLHS(c.graph, FLOAT, params);
    c.prog.add(program::Copy(numbers(c, "meta", UNSIGNED_SHORT, data.metaInfo), lhs.getMetaInfoTensor()));
    c.prog.add(program::Copy(numbers(c, "stored", FLOAT, data.nzValues), lhs.getNzValuesTensor()));
    c.output("dynamic", sparseDenseMatMul(c.graph, lhs, b, c.prog));
    c.output("dynamic transposed", sparseDenseMatMul(c.graph, lhs, left, c.prog, true, true));
    const SparseTensor bare(lhs.getMetaInfoTensor(), lhs.getNzValuesTensor());
    c.error("bare", [&] { sparseDenseMatMul(c.graph, bare, b, c.prog); });
    c.error("depth", [&] { sparseDenseMatMul(c.graph, lhs, d, c.prog); });
  }
  using namespace popsparse::static_;
  const auto first = MatMulParams::createForSparseDense(1, 24, 16, 3);
  const Partitioner<float> partitioner(first, FLOAT, c.graph.getTarget(), {});
  const auto data = partitioner.createSparsityDataImpl(matrix);
  recordFormats(c, partitioner, data);
  const auto csr = partitioner.sparsityDataImplToCSRMatrix(data);
  const auto lhs = createSparseDenseMatMulLHS(c.graph, FLOAT, first, csr);
  const auto stored = numbers(c, "stored static", FLOAT, data.nzValues);
  c.prog.add(program::Copy(stored, lhs.getNzValuesTensor()));
  c.output("static", sparseDenseMatMul(c.graph, lhs, b, c.prog));
  const auto second = MatMulParams::createForDenseSparse(1, 3, 24, 16);
  const auto rhs = createDenseSparseMatMulRHS(c.graph, FLOAT, second, csr);
  c.prog.add(program::Copy(stored, rhs.getNzValuesTensor()));
  c.output("dense sparse", denseSparseMatMul(c.graph, left, rhs, c.prog));
  c.output("dense sparse transposed", denseSparseMatMul(c.graph, right, rhs, c.prog, false, true));
  c.error("order", [&] { createDenseSparseMatMulRHS(c.graph, FLOAT, first, csr); });
}

inline const std::vector<unsigned char> &blockMask() {
  static const std::vector<unsigned char> mask{1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0};
  return mask;
}

inline void blockProductsCase(Case &c, const Type &type) {
  using namespace popsparse::experimental;
  const int block = type == HALF ? 16 : 8;
  const auto size = [&](int blocks) { return static_cast<std::size_t>(blocks * block); };
  const auto elements = size(block);
  // Two groups of a right matrix of 2 by 3 blocks.
  const BSMatMulParams sparse({block, 2 * block, 3 * block}, {block, block, block}, blockMask(), false, type, FLOAT,
                              FLOAT, 2);
  const auto x = c.input("x", type, {size(2), size(2)}), w = c.input("w", type, {6, elements});
  c.output("sparse", bsMatMul(c.graph, sparse, c.prog, x, w));
  // Two groups of a transposed matrix of 3 by 2 blocks.
  const BSMatMulParams transposed({block, 2 * block, 3 * block}, {block, block, block}, blockMask(), true, type, FLOAT,
                                  FLOAT, 2);
  c.output("transposed", bsMatMul(c.graph, transposed, c.prog, x, w));
  // Two groups of a result of 2 by 3 blocks, without the elements above the diagonal.
  const BSMatMulParams result({2 * block, block, 3 * block}, {block, block, block}, blockMask(), type, FLOAT, FLOAT,
                              SubBlockMask::ZeroUpperTriangle, 2);
  const auto a = c.input("a", type, {size(4), size(1)}), b = c.input("b", type, {size(2), size(3)});
  c.output("result", bsMatMul(c.graph, result, c.prog, a, b));
  c.error("block", [&] {
    BSMatMulParams({block, block, block}, {block, block, block / 2}, {1, 1}, false, type, type, FLOAT);
  });
  c.error("mask", [&] {
    BSMatMulParams({block, block, block}, {block, block, block}, {1, 1}, false, type, type, FLOAT);
  });
  c.error("operand", [&] { bsMatMul(c.graph, sparse, c.prog, w, w); });
}

inline void blockSoftmaxCase(Case &c, popsparse::experimental::SubBlockMask mask) {
  using namespace popsparse::experimental;
  const auto x = c.input("x", FLOAT, {6, 8}), g = c.input("g", FLOAT, {6, 8});
  const auto y = bsSoftmax(c.graph, x, {16, 6}, {4, 2}, blockMask(), mask, 2, c.prog);
  c.output("y", y);
  c.output("gradient", bsSoftmaxGrad(c.graph, y, g, {16, 6}, {4, 2}, blockMask(), c.prog));
  c.output("of one group", bsSoftmax(c.graph, x, {8, 6}, {4, 2}, blockMask(), mask, 2, c.prog));
  bsSoftmaxInPlace(c.graph, x, {16, 6}, {4, 2}, blockMask(), mask, 2, c.prog);
  c.output("in place", x);
}

inline std::vector<NamedCase> sparseCases() {
  using popsparse::experimental::SubBlockMask;
  std::vector<NamedCase> cases;
  for (const auto &type : {FLOAT, HALF}) {
    const std::string name(type.toString());
    cases.push_back({"fully connected " + name, [=](Case &c) { fullyConnectedCase(c, type); }});
    cases.push_back({"block products " + name, [=](Case &c) { blockProductsCase(c, type); }});
  }
  cases.push_back({"sparse matmul", [](Case &c) { sparseMatMulCase(c); }});
  cases.push_back({"block softmax none", [](Case &c) { blockSoftmaxCase(c, SubBlockMask::None); }});
  cases.push_back({"block softmax upper", [](Case &c) { blockSoftmaxCase(c, SubBlockMask::ZeroUpperTriangle); }});
  cases.push_back({"block softmax lower", [](Case &c) { blockSoftmaxCase(c, SubBlockMask::ZeroLowerTriangle); }});
  return cases;
}
