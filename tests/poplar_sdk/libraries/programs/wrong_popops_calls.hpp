// Calls of popops and poputil with arguments to be changed.
#pragma once

#include <popops/AllTrue.hpp>
#include <popops/Cast.hpp>
#include <popops/CircBuf.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Fill.hpp>
#include <popops/Gather.hpp>
#include <popops/GatherStatistics.hpp>
#include <popops/Loop.hpp>
#include <popops/NaN.hpp>
#include <popops/NormaliseImage.hpp>
#include <popops/Pad.hpp>
#include <popops/Rearrange.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Scatter.hpp>
#include <popops/SelectScalarFromRows.hpp>
#include <popops/SequenceSlice.hpp>
#include <popops/Sort.hpp>
#include <popops/TopK.hpp>
#include <popops/UpdateScalarInRows.hpp>
#include <popops/Zero.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VarStructure.hpp>

#include "wrong_arguments.hpp"

namespace wrong {

inline const std::vector<Attempt> &popopsCalls() {
  using namespace popops;
  namespace pe = popops::expr;
  static const std::vector<Attempt> calls = {
      {"add", [](Arguments &a) { add(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}), a.prog, {},
         a.options()); }},
      {"addInPlace", [](Arguments &a) { addInPlace(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}),
         a.prog); }},
      {"addWithOutput", [](Arguments &a) { addWithOutput(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}),
         a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"exp", [](Arguments &a) { exp(a.graph, a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"expInPlace", [](Arguments &a) { expInPlace(a.graph, a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"logicalAnd", [](Arguments &a) { logicalAnd(a.graph, a.tensor(BOOL, {3, 4}), a.tensor(BOOL, {3, 4}), a.prog);
         }},
      {"shiftLeft", [](Arguments &a) { shiftLeft(a.graph, a.tensor(INT, {3, 4}), a.tensor(INT, {3, 4}), a.prog); }},
      {"select", [](Arguments &a) { select(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}), a.tensor(BOOL,
         {3, 4}), a.prog); }},
      {"clamp", [](Arguments &a) { clamp(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT,
         {3, 4}), a.prog); }},
      {"map", [](Arguments &a) { map(a.graph, pe::Add(pe::_1, pe::Mul(pe::_2, pe::Const(3.0f))), {a.tensor(FLOAT, {3,
         4}), a.tensor(FLOAT, {3, 4})}, a.prog); }},
      {"map of a missing operand", [](Arguments &a) { const auto t = a.tensor(FLOAT, {3, 4}); map(a.graph,
         pe::Add(pe::_1, pe::PlaceHolder(a.number(1u))), {t}, a.prog); }},
      {"cast", [](Arguments &a) { cast(a.graph, a.tensor(FLOAT, {3, 4}), a.type(INT), a.prog); }},
      {"castWithOutput", [](Arguments &a) { castWithOutput(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(INT, {3, 4}),
         a.prog); }},
      {"cast in a compute set", [](Arguments &a) { a.graph.addComputeSet(); cast(a.graph, a.tensor(FLOAT, {3, 4}),
         a.tensor(INT, {3, 4}), ComputeSet(a.number(0u))); }},
      {"checkAccuracyWhenCast", [](Arguments &a) { checkAccuracyWhenCast(a.graph, a.tensor(FLOAT, {}), a.type(HALF),
         0.1, a.prog); }},
      {"fill", [](Arguments &a) { fill(a.graph, a.tensor(FLOAT, {3, 4}), a.prog, 2.0f); }},
      {"fill of regions", [](Arguments &a) {
         const auto set = a.graph.addComputeSet();
         const auto bounds = a.numbers<>({2, 6});
         std::vector<Interval> regions;
         if (bounds.size() > 1) regions.emplace_back(bounds[0], bounds[1]);
         fill(a.graph, a.tensor(FLOAT, {3, 4}), regions, a.number(1u), set, 2.0f);
         a.prog.add(poplar::program::Execute(set));
       }},
      {"zero", [](Arguments &a) { zero(a.graph, a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"zero on a tile", [](Arguments &a) {
         const auto set = a.graph.addComputeSet();
         zero(a.graph, a.tensor(FLOAT, {3, 4}), a.number(0u), set);
         a.prog.add(poplar::program::Execute(set));
       }},
      {"reduce", [](Arguments &a) { reduce(a.graph, a.tensor(FLOAT, {3, 4}), a.type(FLOAT), a.numbers<>({1}),
         {Operation::ADD}, a.prog, {}, a.options()); }},
      {"reduce with a scale", [](Arguments &a) { reduce(a.graph, a.tensor(FLOAT, {3, 4}), a.numbers<>({0}),
         {Operation::ADD, false, a.tensor(FLOAT, {})}, a.prog); }},
      {"reduceWithOutput", [](Arguments &a) { reduceWithOutput(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT,
         {3}), a.numbers<>({1}), {Operation::MAX}, a.prog); }},
      {"reduceMany", [](Arguments &a) {
         std::vector<Tensor> out{a.tensor(FLOAT, {3})};
         reduceMany(a.graph, {{a.tensor(FLOAT, {3, 4}), a.numbers<>({1}), {Operation::ADD}}}, out, a.prog);
       }},
      {"sort", [](Arguments &a) { sort(a.graph, a.tensor(FLOAT, {3, 4}), a.number(1u), a.prog); }},
      {"sortInPlace", [](Arguments &a) { sortInPlace(a.graph, a.tensor(FLOAT, {3, 4}), a.number(1u), a.prog); }},
      {"sortKeyValue", [](Arguments &a) { sortKeyValue(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(INT, {3, 4}),
         a.number(1u), a.prog); }},
      {"topK", [](Arguments &a) { topK(a.graph, a.prog, a.tensor(FLOAT, {3, 4}), {a.number(2u), true,
         SortOrder::NONE}); }},
      {"topKKeyValue", [](Arguments &a) { topKKeyValue(a.graph, a.prog, a.tensor(FLOAT, {3, 4}), a.tensor(INT, {3,
         4}), {2, true, SortOrder::ASCENDING}); }},
      {"topKWithPermutation", [](Arguments &a) { topKWithPermutation(a.graph, a.prog, a.tensor(FLOAT, {3, 4}),
         {a.number(2u), false, SortOrder::DESCENDING}); }},
      {"pad", [](Arguments &a) { pad(a.graph, a.tensor(FLOAT, {3, 4}), a.numbers<std::ptrdiff_t>({1, 2}),
         a.numbers<std::ptrdiff_t>({0, 2})); }},
      {"pad by a tensor", [](Arguments &a) { pad(a.graph, a.tensor(FLOAT, {3, 4}), {1, 2}, {0, 2}, a.tensor(FLOAT,
         {})); }},
      {"pad by the edge", [](Arguments &a) { pad(a.tensor(FLOAT, {3, 4}), a.numbers<std::ptrdiff_t>({1, 2}),
         a.numbers<std::ptrdiff_t>({0, 2}), padding::Type::EDGE); }},
      {"pad by mirrors", [](Arguments &a) { pad(a.tensor(FLOAT, {3, 4}), std::ptrdiff_t(a.number<std::int16_t>(1)),
         1, a.number(1u), padding::Type::REFLECT); }},
      {"dynamicSlice", [](Arguments &a) { dynamicSlice(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(UNSIGNED_INT, {1}),
         a.numbers<>({0}), a.numbers<>({2}), a.prog, {}, a.options()); }},
      {"dynamicSliceWithOutput", [](Arguments &a) { dynamicSliceWithOutput(a.graph, a.tensor(FLOAT, {2, 4}),
         a.tensor(FLOAT, {6, 4}), a.tensor(UNSIGNED_INT, {1}), {0}, {2}, a.prog); }},
      {"dynamicUpdate", [](Arguments &a) { dynamicUpdate(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(FLOAT, {2, 4}),
         a.tensor(UNSIGNED_INT, {1}), a.numbers<>({0}), a.numbers<>({2}), a.prog); }},
      {"createSliceableTensor", [](Arguments &a) { createSliceableTensor(a.graph, a.type(FLOAT), {6, 4},
         a.numbers<>({0}), a.numbers<>({2}), a.number<std::uint8_t>(1)); }},
      {"createSliceTensor", [](Arguments &a) { createSliceTensor(a.graph, a.tensor(FLOAT, {6, 4}), a.numbers<>({0}),
         a.numbers<>({2}), a.number<std::uint8_t>(3)); }},
      {"createIndicesTensor", [](Arguments &a) { createIndicesTensor(a.graph, a.numbers<>({0}),
         a.number<std::uint8_t>(3), {}, a.options()); }},
      {"createSliceableTensorFromSlice", [](Arguments &a) { createSliceableTensorFromSlice(a.graph, a.tensor(FLOAT,
         {2, 4}), a.numbers<>({0}), a.numbers<>({3})); }},
      {"getSliceMapping", [](Arguments &a) { getSliceMapping(a.graph, a.tensor(FLOAT, {6, 4}), a.numbers<>({0}),
         a.numbers<>({2})); }},
      {"multiSlice", [](Arguments &a) { multiSlice(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(UNSIGNED_INT, {3, 1}),
         a.numbers<>({0}), a.numbers<>({1}), a.prog, {}, a.options()); }},
      {"multiSlice by constants", [](Arguments &a) { const auto t = a.tensor(FLOAT, {6, 4}); multiSlice(a.graph, t,
         ArrayRef<unsigned>(a.numbers<unsigned>({3, 1})), a.number<std::size_t>(0), a.prog); }},
      {"multiUpdate", [](Arguments &a) { multiUpdate(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(FLOAT, {3, 1, 4}),
         a.tensor(UNSIGNED_INT, {3, 1}), a.numbers<>({0}), a.numbers<>({1}), a.prog, {}, {}); }},
      {"multiUpdateAdd", [](Arguments &a) { multiUpdateAdd(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(FLOAT, {3, 1,
         4}), a.tensor(UNSIGNED_INT, {3, 1}), a.tensor(FLOAT, {}), {0}, {1}, a.prog, {}, {}); }},
      {"multiUpdateMax", [](Arguments &a) { multiUpdateMax(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(FLOAT, {3, 1,
         4}), a.tensor(UNSIGNED_INT, {3, 1}), {0}, {1}, a.prog, {}, {}); }},
      {"groupedMultiSlice", [](Arguments &a) { groupedMultiSlice(a.graph, a.tensor(FLOAT, {2, 6, 4}),
         a.tensor(UNSIGNED_INT, {2, 3, 1}), {0}, {1}, a.prog, {}, {}); }},
      {"groupedMultiUpdateAdd", [](Arguments &a) { groupedMultiUpdateAdd(a.graph, a.tensor(FLOAT, {2, 6, 4}),
         a.tensor(FLOAT, {2, 3, 1, 4}), a.tensor(UNSIGNED_INT, {2, 3, 1}), a.tensor(FLOAT, {}), {0}, {1}, a.prog, {},
         {}); }},
      {"embedding::plan", [](Arguments &a) { embedding::plan(a.graph, a.type(FLOAT), a.number<std::size_t>(6),
         a.number<std::size_t>(4), a.numbers<>({3}), a.options()); }},
      {"gather", [](Arguments &a) { gather(a.graph, a.tensor(FLOAT, {5, 4, 2}), a.tensor(INT, {3}), a.number(1u),
         a.prog, {}); }},
      {"gather of windows", [](Arguments &a) { gather(a.graph, a.tensor(FLOAT, {5, 4}), a.tensor(INT, {3, 2}),
         a.number<std::size_t>(1), a.numbers<>({1}), a.numbers<>({2, 1}), a.numbers<>({1}), a.numbers<unsigned>({0,
         1}), a.prog); }},
      {"scatter", [](Arguments &a) { scatter(a.graph, a.tensor(FLOAT, {5, 4}), a.tensor(INT, {3, 1}), a.tensor(FLOAT,
         {3, 4}), a.number<std::size_t>(1), a.numbers<unsigned>({1}), a.numbers<>({0}), a.numbers<unsigned>({0}),
         a.prog); }},
      {"scatter with a function", [](Arguments &a) {
         UpdateComputationFunc sum = [](Graph &graph, Tensor &old, Tensor &update, Sequence &prog) {
            return add(graph, old, update, prog); };
         scatter(a.graph, a.tensor(FLOAT, {5, 4}), a.tensor(INT, {3, 1}), a.tensor(FLOAT, {3, 4}), 1, {1}, {0}, {0},
            sum, a.prog);
       }},
      {"encodeOneHot", [](Arguments &a) { encodeOneHot(a.graph, a.tensor(UNSIGNED_INT, {3}), a.tensor(FLOAT, {3, 4}),
         a.prog, a.tensor(FLOAT, {}), a.tensor(FLOAT, {})); }},
      {"iota", [](Arguments &a) { iota(a.graph, a.tensor(UNSIGNED_INT, {3}), 0u, a.prog); }},
      {"selectScalarFromRows", [](Arguments &a) { selectScalarFromRows(a.graph, a.tensor(FLOAT, {3, 4}),
         a.tensor(UNSIGNED_INT, {3}), a.prog); }},
      {"updateScalarInRows", [](Arguments &a) { updateScalarInRows(a.graph, a.tensor(FLOAT, {3, 4}),
         a.tensor(UNSIGNED_INT, {3}), a.prog); }},
      {"CircBuf", [](Arguments &a) {
         CircBuf buffer(a.graph, a.type(FLOAT), a.number<std::uint8_t>(3), a.numbers<>({4}));
         buffer.add(a.tensor(FLOAT, {4}), a.prog);
         buffer.prev(a.number(1u), a.prog);
       }},
      {"sequenceSlice", [](Arguments &a) { sequenceSlice(a.graph, a.tensor(FLOAT, {6, 4}), a.tensor(FLOAT, {5, 4}),
         a.tensor(UNSIGNED_INT, {2}), a.tensor(UNSIGNED_INT, {2}), a.tensor(UNSIGNED_INT, {2}), true, a.prog); }},
      {"createNormaliseImageInput", [](Arguments &a) { createNormaliseImageInput(a.graph, a.type(FLOAT),
         a.numbers<>({2, 2, 3})); }},
      {"normaliseImage", [](Arguments &a) { normaliseImage(a.graph, a.prog, a.tensor(FLOAT, {2, 2, 3}), 1.0f,
         a.tensor(FLOAT, {3}), a.tensor(FLOAT, {3})); }},
      {"histogram", [](Arguments &a) { histogram(a.graph, a.tensor(FLOAT, {12}), a.tensor(FLOAT, {3}), false, a.prog,
         {}, a.options()); }},
      {"histogram with output", [](Arguments &a) { auto out = a.tensor(UNSIGNED_INT, {4}); histogram(a.graph,
         a.tensor(FLOAT, {12}), out, true, a.tensor(FLOAT, {3}), false, a.prog); }},
      {"scaledAddTo", [](Arguments &a) { scaledAddTo(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}),
         a.tensor(FLOAT, {}), a.prog, {}, a.options()); }},
      {"scaledAddTo of two scales", [](Arguments &a) { scaledAddTo(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT,
         {}), a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {}), a.prog); }},
      {"scaledSubtractFrom", [](Arguments &a) { scaledSubtractFrom(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT,
         {3, 4}), 2.0f, a.prog); }},
      {"countedLoop", [](Arguments &a) { countedLoop(a.graph, a.number<std::size_t>(1), a.number<std::size_t>(5),
         a.number<std::size_t>(2), [](const Tensor &) { return Sequence(); }); }},
      {"countedForLoop", [](Arguments &a) { a.prog.add(countedForLoop(a.graph, a.tensor(INT, {}), 0, a.tensor(INT,
         {}), 1, Sequence())); }},
      {"allTrue", [](Arguments &a) { allTrue(a.graph, a.tensor(BOOL, {3, 4}), a.prog); }},
      {"hasNaN", [](Arguments &a) { hasNaN(a.graph, a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"regroupIfBeneficial", [](Arguments &a) { rearrange::regroupIfBeneficial(a.graph, a.tensor(FLOAT, {3, 4}),
         a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"regroupIfPossible", [](Arguments &a) { rearrange::regroupIfPossible(a.graph, a.tensor(FLOAT, {3, 4}), a.prog,
         {a.number(0u), a.number(3u)}); }},
      {"mapTensorLinearly", [](Arguments &a) { poputil::mapTensorLinearly(a.graph, a.tensor(FLOAT, {30, 4}),
         a.number(8u), a.number(4u)); }},
      {"mapTensorLinearlyWithOffset", [](Arguments &a) { poputil::mapTensorLinearlyWithOffset(a.graph,
         a.tensor(FLOAT, {30, 4}), a.number(3u)); }},
      {"calcLinearTileMapping", [](Arguments &a) { poputil::calcLinearTileMapping(a.graph, a.numbers<>({30, 4}),
         a.number(8u), a.number(4u), a.number(3u)); }},
      {"chooseMappingOffset", [](Arguments &a) { poputil::chooseMappingOffset(a.number<std::size_t>(8),
         a.numbers<>({30, 4})); }},
      {"getTileImbalance", [](Arguments &a) { poputil::getTileImbalance(a.graph, a.tensor(FLOAT, {30, 4}),
         a.number(8u), a.number(4u)); }},
      {"cloneToIpu", [](Arguments &a) { poputil::cloneToIpu(a.graph, a.tensor(FLOAT, {3, 4}), a.number(1u)); }},
      {"cloneAndExpandAliasing", [](Arguments &a) { poputil::cloneAndExpandAliasing(a.graph, a.tensor(FLOAT, {3, 4}),
         a.number(1u)); }},
      {"broadcastToMatch", [](Arguments &a) { auto t = a.tensor(FLOAT, {3, 1}); poputil::broadcastToMatch(t,
         a.numbers<>({3, 4})); }},
      {"broadcastToMatch of two", [](Arguments &a) { auto s = a.tensor(FLOAT, {3, 1}), t = a.tensor(FLOAT, {3, 4});
         poputil::broadcastToMatch(s, t); }},
      {"duplicate", [](Arguments &a) { poputil::duplicate(a.graph, a.tensor(FLOAT, {3, 4}), a.prog); }},
      {"factorDims", [](Arguments &a) { poputil::factorDims(a.tensor(FLOAT, {4, 6}), a.numbers<>({2, 3}),
         a.number(0u)); }},
      {"unfactorDims", [](Arguments &a) { poputil::unfactorDims(a.tensor(FLOAT, {2, 3, 2, 3}), a.number(2u),
         a.number(0u)); }},
      {"calculateUnshufflingIntervals", [](Arguments &a) { poputil::splitRegions({Interval(2, 6)}, a.number(1u),
         a.number(3u)); }},
      {"detectInnermostGrouping", [](Arguments &a) { poputil::detectInnermostGrouping(a.graph, a.tensor(FLOAT, {3,
         4})); }},
      {"detectDimGroupings", [](Arguments &a) { poputil::detectDimGroupings(a.graph, a.tensor(FLOAT, {3, 4})); }},
      {"createPartitionableTensor", [](Arguments &a) { poputil::createPartitionableTensor(a.graph, a.type(FLOAT),
         a.numbers<>({4, 6}), a.numbers<>({2, 3})); }},
  };
  return calls;
}

}  // namespace wrong
