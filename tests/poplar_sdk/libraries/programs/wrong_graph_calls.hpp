// Calls of the graph's, tensors' and programs' functions with arguments to be changed.
#pragma once

#include <poplar/CSRFunctions.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/RandomSeed.hpp>

#include "wrong_arguments.hpp"

namespace wrong {

using namespace poplar::program;

inline const std::vector<Attempt> &graphCalls() {
  static const std::vector<Attempt> calls = {
      {"addVariable", [](Arguments &a) { a.graph.addVariable(a.type(FLOAT), a.numbers<>({3, 4})); }},
      {"addVariable linear", [](Arguments &a) { a.graph.addVariable(a.type(FLOAT), a.numbers<>({3, 4}),
         VariableMappingMethod::LINEAR); }},
      {"addConstant", [](Arguments &a) { a.graph.addConstant(a.type(FLOAT), a.numbers<>({4}), ArrayRef<float>({1, 2,
         3, 4})); }},
      {"addConstant of one", [](Arguments &a) { a.graph.addConstant(a.type(FLOAT), a.numbers<>({4}), 1.0f); }},
      {"clone", [](Arguments &a) { a.graph.clone(a.type(FLOAT), a.tensor(FLOAT, {3, 4})); }},
      {"cloneN", [](Arguments &a) { a.graph.cloneN(a.tensor(FLOAT, {3, 4}), a.number<std::uint8_t>(2)); }},
      {"setTileMapping", [](Arguments &a) { a.graph.setTileMapping(a.tensor(FLOAT, {3, 4}), a.number(7u)); }},
      {"setTileMapping of a mapping", [](Arguments &a) {
         const auto tensor = a.tensor(FLOAT, {12});
         const auto bounds = a.numbers<>({4, 12});
         Graph::TileToTensorMapping mapping(a.number<std::uint8_t>(3));
         if (!mapping.empty() && bounds.size() > 1) mapping.back().push_back(Interval(bounds[0], bounds[1]));
         a.graph.setTileMapping(tensor, mapping);
       }},
      {"getTileMapping", [](Arguments &a) { a.graph.getTileMapping(a.tensor(FLOAT, {3, 4})); }},
      {"setInitialValue", [](Arguments &a) { a.graph.setInitialValue(a.tensor(FLOAT, {4}), ArrayRef<float>({1, 2, 3,
         4})); }},
      {"getSortedContiguousRegions", [](Arguments &a) {
         const auto bounds = a.numbers<>({2, 6});
         const auto tensor = a.tensor(FLOAT, {3, 4});
         if (bounds.size() > 1) a.graph.getSortedContiguousRegions(tensor, {Interval(bounds[0], bounds[1])});
       }},
      {"reorderToSimplify", [](Arguments &a) {
         auto tensor = a.tensor(FLOAT, {3, 4}), second = a.tensor(FLOAT, {3, 4});
         a.graph.reorderToSimplify(&tensor, {&second});
       }},
      {"findUnbroadcastTensor", [](Arguments &a) { a.graph.findUnbroadcastTensor(a.tensor(FLOAT, {3, 4})); }},
      {"createHostWrite", [](Arguments &a) { a.graph.createHostWrite("handle", a.tensor(FLOAT, {3, 4})); }},
      {"createHostRead", [](Arguments &a) { a.graph.createHostRead("handle", a.tensor(FLOAT, {3, 4})); }},
      {"addHostToDeviceFIFO", [](Arguments &a) { a.graph.addHostToDeviceFIFO("handle", a.type(FLOAT),
         a.number<std::size_t>(4), ReplicatedStreamMode::REPLICATE, a.options()); }},
      {"addDeviceToHostFIFO", [](Arguments &a) { a.graph.addDeviceToHostFIFO("handle", a.type(FLOAT),
         a.number<std::size_t>(4), a.options()); }},
      {"addRemoteBuffer", [](Arguments &a) { a.graph.addRemoteBuffer("handle", a.type(FLOAT),
         a.number<std::size_t>(4), a.number<std::size_t>(2)); }},
      {"createVirtualGraph", [](Arguments &a) {
         auto graph = a.graph.createVirtualGraph(a.number(4u));
         graph.setTileMapping(graph.addVariable(FLOAT, {3}), 3);
       }},
      {"createVirtualGraph of a range", [](Arguments &a) { a.graph.createVirtualGraph(a.number(2u), a.number(6u)); }},
      {"createVirtualGraph of tiles", [](Arguments &a) {
         auto graph = a.graph.createVirtualGraph(a.numbers<unsigned>({2, 6}));
         graph.setTileMapping(graph.addVariable(FLOAT, {3}), 1);
       }},
      {"convertVirtualTileToPhysicalTile", [](Arguments &a) { a.graph.convertVirtualTileToPhysicalTile(a.number(3u));
         }},
      {"getVariable", [](Arguments &a) {
         a.graph.addVariable(FLOAT, {3});
         a.graph.getVariable(VariableRef(a.number(0u)));
       }},
      {"isConstant", [](Arguments &a) {
         a.graph.addVariable(FLOAT, {3});
         a.graph.isConstant(VariableRef(a.number(0u)));
       }},
      {"getNonReplicatedTensor", [](Arguments &a) { a.graph.getNonReplicatedTensor(a.tensor(FLOAT, {3})); }},
      {"Graph", [](Arguments &a) { Graph graph(Target::createIPUTarget(a.number(4u), a.number(8u), "ipu2"),
         replication_factor(a.number(2u))); }},
      {"createIPUTarget", [](Arguments &a) { Target::createIPUTarget(a.number(4u), a.number(8u), "ipu2",
         a.options()); }},
      {"createVirtualTarget", [](Arguments &a) { a.graph.getTarget().createVirtualTarget(a.number(1u), a.number(8u));
         }},
      {"getTypeSize", [](Arguments &a) { a.graph.getTarget().getTypeSize(a.type(FLOAT)); }},
      {"getVectorWidth", [](Arguments &a) { a.graph.getTarget().getVectorWidth(a.type(FLOAT)); }},
      {"operator[]", [](Arguments &a) { a.tensor(FLOAT, {3, 4})[a.number<std::size_t>(2)]; }},
      {"index", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).index(a.numbers<>({2, 3})); }},
      {"slice", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).slice(a.number<std::size_t>(1), a.number<std::size_t>(2),
         a.number(1u)); }},
      {"slice of all", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).slice(a.numbers<>({1, 2}), a.numbers<>({2, 4})); }},
      {"slices", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).slices(ArrayRef<unsigned>(a.numbers<unsigned>({1, 2})),
         a.number(1u)); }},
      {"flatten", [](Arguments &a) { a.tensor(FLOAT, {3, 4, 2}).flatten(a.number(1u), a.number(3u)); }},
      {"reshape", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).reshape(a.numbers<>({2, 6})); }},
      {"reshapePartial", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).reshapePartial(a.number(1u), a.number(2u),
         a.numbers<>({2, 2})); }},
      {"expand", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).expand(a.numbers<>({0, 2})); }},
      {"squeeze", [](Arguments &a) { a.tensor(FLOAT, {1, 4, 1}).squeeze(a.numbers<>({0, 2})); }},
      {"dimShuffle", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).dimShuffle(a.numbers<unsigned>({1, 0})); }},
      {"dimShufflePartial", [](Arguments &a) { a.tensor(FLOAT, {3, 4, 2}).dimShufflePartial(a.numbers<unsigned>({2}),
         a.numbers<unsigned>({0})); }},
      {"dimRoll", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).dimRoll(a.number(1u), a.number(0u)); }},
      {"transpose", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).transpose(); }},
      {"reverse", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).reverse(a.number(1u)); }},
      {"subSample", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).subSample(a.number(2u), a.number(1u)); }},
      {"broadcast", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).broadcast(a.number(2u), a.number(1u)).numElements();
         }},
      {"upsample", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).upsample(a.number(2u), a.number(1u)); }},
      {"reinterpret", [](Arguments &a) { a.tensor(FLOAT, {3, 4}).reinterpret(a.type(INT)); }},
      {"concat", [](Arguments &a) { concat({a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4})}, a.number(1u)); }},
      {"append", [](Arguments &a) { append(a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {4}), a.number(0u)); }},
      {"getConstantData", [](Arguments &a) { float values[12]; a.tensor(FLOAT, {3, 4}).getConstantData(values, 12);
         }},
      {"views of a tensor", [](Arguments &a) {
         const auto tensor = a.tensor(FLOAT, {3, 4});
         tensor.isContiguous(), tensor.isParallelWriteable(), tensor.getContiguousRegions(), tensor.getVarRegions();
         tensor.getDebugStr();
       }},
      {"Copy", [](Arguments &a) { a.prog.add(Copy(a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}))); }},
      {"Copy from a stream", [](Arguments &a) {
         auto stream = a.graph.addHostToDeviceFIFO("in", FLOAT, 12);
         a.prog.add(Copy(stream, a.tensor(FLOAT, {3, 4})));
       }},
      {"Copy to a stream", [](Arguments &a) {
         auto stream = a.graph.addDeviceToHostFIFO("out", FLOAT, 12);
         a.prog.add(Copy(a.tensor(FLOAT, {3, 4}), stream));
       }},
      {"Copy from a remote buffer", [](Arguments &a) {
         auto buffer = a.graph.addRemoteBuffer("remote", FLOAT, 12, 3);
         a.prog.add(Copy(buffer, a.tensor(FLOAT, {3, 4})));
       }},
      {"Copy of rows to a remote buffer", [](Arguments &a) {
         auto buffer = a.graph.addRemoteBuffer("remote", FLOAT, 4, 3);
         a.prog.add(Copy(a.tensor(FLOAT, {2, 4}), buffer, a.tensor(UNSIGNED_INT, {2})));
       }},
      {"CrossReplicaCopy", [](Arguments &a) { a.prog.add(CrossReplicaCopy(a.tensor(FLOAT, {3}), a.tensor(FLOAT, {3}),
         {{a.number(0u), a.number(0u)}})); }},
      {"WriteUndef", [](Arguments &a) { a.prog.add(WriteUndef(a.tensor(FLOAT, {3}))); }},
      {"AssumeEqualAcrossReplicas", [](Arguments &a) { a.prog.add(AssumeEqualAcrossReplicas(a.tensor(FLOAT, {3})));
         }},
      {"If", [](Arguments &a) { a.prog.add(If(a.tensor(BOOL, {}), Sequence(), Sequence())); }},
      {"Switch", [](Arguments &a) { a.prog.add(Switch(a.tensor(INT, {}), {{1, Sequence()}})); }},
      {"RepeatWhileTrue", [](Arguments &a) { a.prog.add(RepeatWhileTrue(Sequence(), a.tensor(BOOL, {}), Sequence()));
         }},
      {"Execute", [](Arguments &a) {
         a.graph.addComputeSet();
         a.prog.add(Execute(ComputeSet(a.number(0u)), a.tensor(BOOL, {})));
       }},
      {"Call", [](Arguments &a) {
         a.graph.addFunction(Sequence());
         a.prog.add(program::Call(Function(a.number(0u))));
       }},
      {"Call of a host function", [](Arguments &a) {
         const auto function = a.graph.addHostFunction("host", {{FLOAT, 3}}, {{FLOAT, 4}});
         a.prog.add(program::Call(function, {a.tensor(FLOAT, {3})}, {a.tensor(FLOAT, {4})}));
       }},
      {"PrintTensor", [](Arguments &a) { a.prog.add(PrintTensor(a.tensor(FLOAT, {3, 4}))); }},
      {"AbortOnCondition", [](Arguments &a) { a.prog.add(AbortOnCondition(a.tensor(BOOL, {}))); }},
      {"ErrorProgram", [](Arguments &a) { a.prog.add(If(a.tensor(BOOL, {}), ErrorProgram("error", a.tensor(FLOAT,
         {3})), Sequence())); }},
      {"cycleCount", [](Arguments &a) { cycleCount(a.graph, a.prog, a.number(3u)); }},
      {"cycleStamp", [](Arguments &a) { cycleStamp(a.graph, a.prog, a.number(3u), SyncType::INTERNAL); }},
      {"setHwSeeds", [](Arguments &a) { setHwSeeds(a.graph, getHwSeeds(a.graph, a.prog), a.prog); setHwSeeds(a.graph,
         a.tensor(UNSIGNED_INT, {16, 6, 4}), a.prog); }},
  };
  return calls;
}

}  // namespace wrong
