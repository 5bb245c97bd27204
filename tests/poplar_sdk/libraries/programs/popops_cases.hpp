// Cases of poputil and of popops besides element-wise functions.
#pragma once

#include <popnn/NonLinearityDefUtil.hpp>
#include <popops/AllTrue.hpp>
#include <popops/CircBuf.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Gather.hpp>
#include <popops/Loop.hpp>
#include <popops/NaN.hpp>
#include <popops/NormaliseImage.hpp>
#include <popops/OperationDefUtil.hpp>
#include <popops/Pad.hpp>
#include <popops/Reduce.hpp>
#include <popops/Scatter.hpp>
#include <popops/SelectScalarFromRows.hpp>
#include <popops/SequenceSlice.hpp>
#include <popops/Sort.hpp>
#include <popops/TopK.hpp>
#include <popops/UpdateScalarInRows.hpp>
#include <popops/Zero.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/GraphFunction.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VarStructure.hpp>
#include <poputil/VertexTemplates.hpp>
#include <sstream>

#include "cases.hpp"

// An integer or a vector of them as an output.
inline void number(Case &c, const std::string &name, const std::vector<double> &values) {
  c.output(name, c.data("given " + name, INT, {values.size()}, values));
}

inline void reductions(Case &c, const Type &type, const std::vector<popops::Operation> &ops, double low, double high) {
  const auto a = c.input("a", type, {6, 5, 70}, low, high);
  for (auto op : ops) {
    std::ostringstream name;
    name << op;
    c.output(name.str() + " 0", popops::reduce(c.graph, a, {0}, op, c.prog));
    c.output(name.str() + " 2", popops::reduce(c.graph, a, {2}, op, c.prog));
    c.output(name.str() + " 0,2", popops::reduce(c.graph, a, {0, 2}, op, c.prog));
    c.output(name.str() + " 0,1,2", popops::reduce(c.graph, a, {0, 1, 2}, op, c.prog));
  }
}

inline std::vector<NamedCase> popopsCases() {
  using popops::Operation;
  using popops::SortOrder;
  std::vector<NamedCase> cases;
  const std::vector<Operation> numeric{Operation::ADD, Operation::MUL, Operation::MIN, Operation::MAX,
                                       Operation::SQUARE_ADD};
  cases.push_back({"reduce float", [=](Case &c) {
                     auto all = numeric;
                     all.push_back(Operation::LOG_ADD);
                     reductions(c, FLOAT, all, -1.1, 1.1);
                   }});
  cases.push_back({"reduce half", [=](Case &c) { reductions(c, HALF, numeric, -1.1, 1.1); }});
  cases.push_back({"reduce int", [=](Case &c) { reductions(c, INT, numeric, -3, 3); }});
  cases.push_back({"reduce bool", [=](Case &c) {
                     reductions(c, BOOL, {Operation::LOGICAL_AND, Operation::LOGICAL_OR}, -0.02, 1);
                   }});
  cases.push_back({"reduce options", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {8, 9}), h = c.input("h", HALF, {300, 4}, 0, 9);
                     const auto scale = c.input("scale", FLOAT, {}), old = c.input("old", FLOAT, {9});
                     const auto sum = c.graph.clone(old);
                     c.prog.add(program::Copy(old, sum));
                     popops::reduceWithOutput(c.graph, a, sum, {0}, {Operation::ADD, true, scale}, c.prog);
                     c.output("sum", sum);
                     c.output("wide", popops::reduce(c.graph, h, FLOAT, {0}, Operation::ADD, c.prog));
                     const Tensor unit = c.graph.clone(sum.expand({0}), "unit");
                     popops::reduceWithOutput(c.graph, a, unit, {0}, Operation::ADD, c.prog);
                     c.output("unit axis", unit);
                     c.error("shape", [&] {
                       popops::reduceWithOutput(c.graph, a, sum.expand({1}).broadcast(2, 1), {0}, Operation::ADD, c.prog);
                     });
                     c.output("transposed", popops::reduce(c.graph, a.transpose(), {0}, Operation::MAX, c.prog));
                     std::vector<Tensor> many;
                     popops::reduceMany(c.graph, {{a, {1}, Operation::ADD}, {h, {1}, Operation::MAX, FLOAT}}, many, c.prog);
                     c.output("many 0", many[0]);
                     c.output("many 1", many[1]);
                     c.error("types", [&] { popops::reduce(c.graph, a, INT, {0}, Operation::ADD, c.prog); });
                     c.error("dims", [&] { popops::reduce(c.graph, a, {2}, Operation::ADD, c.prog); });
                   }});
  for (const auto &type : {FLOAT, HALF, INT})
    cases.push_back({"sort " + std::string(type.toString()), [=](Case &c) {
                       const auto a = c.input("a", type, {7, 33}, -9, 9), v = c.input("v", INT, {7, 33}, 0, 999);
                       c.output("sorted 0", popops::sort(c.graph, a, 0, c.prog));
                       c.output("sorted 1", popops::sort(c.graph, a, 1, c.prog));
                       c.output("values", popops::sortKeyValue(c.graph, a, v, 1, c.prog));
                       for (auto order : {SortOrder::NONE, SortOrder::ASCENDING, SortOrder::DESCENDING})
                         for (bool largest : {false, true}) {
                           std::ostringstream name;
                           name << order << (largest ? " largest" : " smallest");
                           const auto top = popops::topKWithPermutation(c.graph, c.prog, a, {5, largest, order, true});
                           c.output(name.str(), top.first);
                           c.output(name.str() + " at", top.second);
                         }
                       const auto pair = popops::topKKeyValue(c.graph, c.prog, a, v, {3, true, SortOrder::DESCENDING});
                       c.output("keys", pair.first);
                       c.output("with keys", pair.second);
                       const auto copy = c.graph.clone(a), moved = c.graph.clone(v);
                       c.prog.add(program::Copy(a, copy));
                       c.prog.add(program::Copy(v, moved));
                       popops::sortKeyValueInPlace(c.graph, copy, moved, 1, c.prog);
                       c.output("in place", copy);
                       c.output("moved", moved);
                       c.error("k", [&] { popops::topK(c.graph, c.prog, a, {34, true, SortOrder::NONE}); });
                     }});
  cases.push_back({"loops", [](Case &c) {
                     const auto limit = c.data("limit", INT, {}, {4}), ones = c.data("ones", UNSIGNED_INT, {}, {1});
                     const auto sum = c.data("sum", UNSIGNED_INT, {1}, {0}), runs = c.data("runs", UNSIGNED_INT, {}, {0});
                     const auto nested = c.data("nested", UNSIGNED_INT, {1}, {0});
                     c.prog.add(popops::countedLoop(c.graph, 3, 20, 4, [&](const Tensor &i) {
                       Sequence body;
                       popops::addInPlace(c.graph, sum, i, body);
                       return body;
                     }));
                     c.prog.add(popops::countedLoop(c.graph, 5, [&](const Tensor &i) {
                       return popops::countedLoop(c.graph, 3, [&](const Tensor &k) {
                         Sequence body;
                         popops::mapInPlace(c.graph, popops::expr::_1 + popops::expr::_2 * popops::expr::_3,
                                            {nested, i, k}, body);
                         return body;
                       });
                     }));
                     Sequence body;
                     popops::addInPlace(c.graph, runs, ones, body);
                     c.prog.add(popops::countedForLoop(c.graph, -2, limit, 2, body));
                     c.output("sum of i", sum);
                     c.output("nested sum", nested);
                     c.output("number of runs", runs);
                   }});
  cases.push_back({"rows", [](Case &c) {
                     const auto m = c.input("m", FLOAT, {5, 6}), h = c.input("h", HALF, {5, 6});
                     const auto at = c.data("at", UNSIGNED_INT, {5}, {2, 0, 4294967295.0, 6, 5});
                     const auto updated = c.graph.clone(m), hot = c.graph.addVariable(FLOAT, {5, 6});
                     c.graph.setTileMapping(hot, 1);
                     c.prog.add(program::Copy(m, updated));
                     c.output("selected", popops::selectScalarFromRows(c.graph, m, at, c.prog));
                     c.output("half", popops::selectScalarFromRows(c.graph, h, at, c.prog));
                     popops::updateScalarInRows(c.graph, updated, at, c.prog);
                     c.output("updated", updated);
                     popops::encodeOneHot(c.graph, at, hot, c.prog);
                     c.output("one hot", hot);
                     const auto u = c.graph.addVariable(UNSIGNED_INT, {300}), i = c.graph.addVariable(INT, {7});
                     poputil::mapTensorLinearly(c.graph, u);
                     poputil::mapTensorLinearly(c.graph, i);
                     popops::iota(c.graph, u, 5u, c.prog);
                     popops::iota(c.graph, i, -3, c.prog);
                     c.output("iota", u);
                     c.output("signed iota", i);
                     const auto yes = c.data("yes", BOOL, {3}, {1, 1, 1}), no = c.data("no", BOOL, {3}, {1, 0, 1});
                     c.output("all of yes", popops::allTrue(c.graph, yes, c.prog));
                     c.output("all of no", popops::allTrue(c.graph, no, c.prog));
                     const auto nan = c.data("nan", FLOAT, {2}, {1, NAN}), inf = c.data("inf", FLOAT, {2}, {1, INFINITY});
                     c.output("nan in m", popops::hasNaN(c.graph, m, c.prog));
                     c.output("nan in nan", popops::hasNaN(c.graph, nan, c.prog));
                     c.output("nan in inf", popops::hasNaN(c.graph, inf, c.prog));
                     c.output("inf in inf", popops::hasNaNOrInf(c.graph, inf, c.prog));
                     const auto image = c.input("image", UNSIGNED_CHAR, {4, 5, 3}, 0, 255);
                     const auto offsets = c.input("offsets", HALF, {3}), scales = c.input("scales", HALF, {3});
                     c.output("normalised", popops::normaliseImage(c.graph, c.prog, image, 1 / 255.0f, offsets, scales));
                   }});
  cases.push_back({"dynamic slice", [](Case &c) {
                     const auto t = c.input("t", FLOAT, {6, 7, 4}), s = c.input("s", FLOAT, {2, 7, 3});
                     const auto at = c.data("at", UNSIGNED_INT, {2}, {3, 1}), last = c.data("last", UNSIGNED_INT, {1}, {5});
                     const auto i = c.input("i", UNSIGNED_CHAR, {9, 5}, 0, 255);
                     c.output("slice", popops::dynamicSlice(c.graph, t, at, {0, 2}, {2, 3}, c.prog));
                     c.output("wrapped", popops::dynamicSlice(c.graph, t, last, {0}, {3}, c.prog));
                     c.output("bytes", popops::dynamicSlice(c.graph, i.transpose(), last, {1}, {2}, c.prog));
                     const auto updated = c.graph.clone(t);
                     c.prog.add(program::Copy(t, updated));
                     popops::dynamicUpdate(c.graph, updated, s, at, {0, 2}, {2, 3}, c.prog);
                     c.output("updated", updated);
                     popops::CircBuf buffer(c.graph, FLOAT, 3, {2});
                     for (unsigned row = 0; row != 4; ++row) buffer.add(t[row].slice(0, 2).flatten().slice(0, 2), c.prog);
                     c.output("buffered", poplar::concat(buffer.prev(0, c.prog), buffer.prev(2, c.prog)));
                     c.error("sizes", [&] { popops::dynamicSlice(c.graph, t, at, {0}, {2}, c.prog); });
                   }});
  for (const auto &type : {FLOAT, HALF, INT})
    cases.push_back({"multi slice " + std::string(type.toString()), [=](Case &c) {
                       const auto t = c.input("t", type, {9, 5}, -9, 9), s = c.input("s", type, {4, 1, 5}, -9, 9);
                       const auto at = c.data("at", UNSIGNED_INT, {4, 1}, {3, 8, 3, 11});
                       const auto scale = c.data("scale", type, {}, {2});
                       const auto plan = popops::embedding::plan(c.graph, type, 9, 5, {4}, {});
                       c.output("slices", popops::multiSlice(c.graph, t, at, {0}, {1}, c.prog, plan, {}));
                       c.output("remapped", popops::multiSlice(c.graph, t, at, {0}, {1}, c.prog, plan,
                                                               {{"remapOutOfBoundIndices", "true"}}));
                       const std::vector<unsigned> fixed{1, 0};
                       c.output("columns", popops::multiSlice(c.graph, t, fixed, 1, c.prog));
                       const auto copy = [&] {
                         const auto result = c.graph.clone(t);
                         c.prog.add(program::Copy(t, result));
                         return result;
                       };
                       const auto set = copy(), added = copy(), most = copy();
                       popops::multiUpdate(c.graph, set, s, at, {0}, {1}, c.prog, plan, {});
                       popops::multiUpdateAdd(c.graph, added, s, at, scale, {0}, {1}, c.prog, plan, {});
                       popops::multiUpdateMax(c.graph, most, s, at, {0}, {1}, c.prog, plan, {});
                       c.output("set", set);
                       c.output("added", added);
                       c.output("most", most);
                       const auto groups = c.input("groups", type, {2, 6, 3}, -9, 9), g = c.graph.clone(groups);
                       const auto where = c.data("where", UNSIGNED_INT, {2, 3, 1}, {5, 0, 5, 2, 2, 1});
                       const auto updates = c.input("updates", type, {2, 3, 1, 3}, -9, 9);
                       c.output("grouped", popops::groupedMultiSlice(c.graph, groups, where, {0}, {1}, c.prog, plan, {}));
                       c.prog.add(program::Copy(groups, g));
                       popops::groupedMultiUpdateAdd(c.graph, g, updates, where, scale, {0}, {1}, c.prog, plan, {});
                       c.output("grouped sums", g);
                     }});
  cases.push_back({"gather and scatter", [](Case &c) {
                     const auto t = c.input("t", FLOAT, {5, 4, 3});
                     const auto at = c.data("at", INT, {2, 3}, {1, 0, 4, 3, 3, 2});
                     c.output("axis 0", popops::gather(c.graph, t, at, 0, c.prog, {}));
                     c.output("axis 2", popops::gather(c.graph, t, at.slice(0, 1), 2, c.prog, {}));
                     const auto points = c.data("points", INT, {4, 2}, {0, 1, 4, 3, 2, 2, 9, 1});
                     c.output("points of t", popops::gather(c.graph, t, points, 1, {1}, {1, 1, 3}, {0, 1}, {0, 1}, c.prog));
                     c.output("windows", popops::gather(c.graph, t, points, 1, {0, 2}, {2, 1, 3}, {1}, {0, 1}, c.prog));
                     const auto updates = c.input("updates", FLOAT, {4, 3});
                     const auto set = c.graph.clone(t), sum = c.graph.clone(t);
                     c.prog.add(program::Copy(t, set));
                     c.prog.add(program::Copy(t, sum));
                     popops::scatter(c.graph, set, points, updates, 1, {1}, {0, 1}, {0, 1}, c.prog);
                     popops::UpdateComputationFunc add = [](Graph &graph, Tensor &old, Tensor &update, Sequence &prog) {
                       return popops::add(graph, old, update, prog);
                     };
                     popops::scatter(c.graph, sum, points, updates, 1, {1}, {0, 1}, {0, 1}, add, c.prog);
                     c.output("set", set);
                     c.output("sum", sum);
                     const auto n = c.data("n", UNSIGNED_INT, {2}, {2, 1}), from = c.data("from", UNSIGNED_INT, {2}, {1, 4});
                     const auto to = c.data("to", UNSIGNED_INT, {2}, {3, 0});
                     const auto rows = c.graph.clone(t);
                     popops::sequenceSlice(c.graph, t, rows, n, from, to, true, c.prog);
                     c.output("rows", rows);
                   }});
  cases.push_back({"pad", [](Case &c) {
                     const auto t = c.input("t", FLOAT, {3, 4}), v = c.input("v", FLOAT, {});
                     const auto keep = [&](const char *name, const Tensor &view) {
                       const auto copy = c.graph.addVariable(FLOAT, view.shape());
                       poputil::mapTensorLinearly(c.graph, copy);
                       c.prog.add(program::Copy(view, copy));
                       c.output(name, copy);
                     };
                     keep("constant", popops::pad(c.graph, t, {1, 0}, {2, 3}, 1.5f));
                     keep("cut", popops::pad(c.graph, t, {-1, 2}, {0, -2}));
                     keep("tensor", popops::pad(c.graph, t, 1, 1, 0, v));
                     keep("edge", popops::pad(t, {1, 2}, {2, 0}, popops::padding::Type::EDGE));
                     keep("reflect", popops::pad(t, {2, 1}, {1, 3}, popops::padding::Type::REFLECT));
                   }});
  cases.push_back({"poputil", [](Case &c) {
                     const auto t = c.input("t", FLOAT, {4, 6}), twice = poputil::duplicate(c.graph, t, c.prog);
                     c.output("twice", twice);
                     const auto factored = poputil::factorDims(t, {2, 3});
                     const auto copy = c.graph.addVariable(FLOAT, factored.shape());
                     poputil::mapTensorLinearly(c.graph, copy);
                     c.prog.add(program::Copy(factored, copy));
                     c.output("factored", copy);
                     c.output("unfactored", poputil::unfactorDims(copy, 2));
                     const auto parts = poputil::createPartitionableTensor(c.graph, FLOAT, {4, 6}, {2, 3});
                     poputil::mapTensorLinearly(c.graph, parts);
                     c.prog.add(program::Copy(t, parts));
                     c.output("parts", parts);
                     number(c, "groupings", {double(poputil::detectInnermostGrouping(c.graph, t)),
                                             double(poputil::detectInnermostGrouping(c.graph, t.transpose())),
                                             double(poputil::detectInnermostGrouping(c.graph, parts))});
                     poputil::graphfn::TensorFunction twice_plus(
                         c.graph, {poputil::graphfn::input(t, "x"), poputil::graphfn::inout(t, "y")},
                         [&](std::vector<Tensor> &a, Sequence &prog) {
                           popops::addInPlace(c.graph, a[1], 1.0f, prog);
                           return popops::mul(c.graph, a[0], a[1], prog);
                         });
                     std::vector<Tensor> arguments{t, twice};
                     c.output("function 1", twice_plus(arguments, c.prog));
                     c.output("function 2", twice_plus(arguments, c.prog));
                     std::vector<double> tiles;
                     const auto mapped = c.graph.addVariable(FLOAT, {1000});
                     poputil::mapTensorLinearlyWithOffset(c.graph, mapped, 50, 10, 3);
                     for (const auto &regions : c.graph.getTileMapping(mapped)) {
                       std::size_t size = 0;
                       for (const auto &region : regions) size += region.size();
                       tiles.push_back(double(size));
                     }
                     number(c, "tiles", tiles);
                     number(c, "imbalance", {double(poputil::getTileImbalance(c.graph, mapped)),
                                             double(poputil::getTileImbalance(c.graph, t))});
                     std::vector<double> workers;
                     for (const auto &part : poputil::splitRegionsBetweenWorkers(c.graph.getTarget(), {{3, 10}, {20, 33}}, 2))
                       for (const auto &region : part) workers.insert(workers.end(), {double(region.begin()), double(region.end())});
                     number(c, "workers", workers);
                     c.error("vertex", [&] {
                       throw std::runtime_error(poputil::templateVertex("ns::V", FLOAT, true, 3, "int", std::string("x")) +
                                                poputil::templateVertex("W", popops::Operation::LOG_ADD,
                                                                        popnn::NonLinearityType::GELU_ERF));
                     });
                     auto wide = t[0].reshape({1, 6}), other = c.input("other", FLOAT, {5, 1});
                     c.error("broadcast", [&] { poputil::broadcastToMatch(wide, {5, 7}); });
                     poputil::broadcastToMatch(wide, other);
                     number(c, "broadcast shape", {double(wide.dim(0)), double(other.dim(1))});
                   }});
  return cases;
}
