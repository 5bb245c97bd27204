// Graphs of variables, constants, vertices and their mapping to tiles.
#ifndef poplar_Graph_hpp
#define poplar_Graph_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/CodeletFileType.hpp>
#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/Interval.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/PerfEstimateFunc.hpp>
#include <poplar/Program.hpp>
#include <poplar/SerializationFormat.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <poplar/Type.hpp>
#include <poplar/TypeTraits.hpp>
#include <poplar/VariableMappingMethod.hpp>
#include <poplar/detail/headers.hpp>
#include <poplar/exceptions.hpp>
#include <poplar/replication_factor.hpp>

// Sources of custom ops use these without including them.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace poplar {

class Device;

namespace detail {
struct GraphState;
}

StringRef versionString();
StringRef packageHash();

class Graph {
 public:
  using TileToTensorMapping = std::vector<std::vector<Interval>>;

  // A field and what an added vertex connects to it.
  struct ConnectionDesc {
    ConnectionDesc(StringRef field, Tensor value) : name(field.str()), tensors{std::move(value)}, single(true) {}
    ConnectionDesc(StringRef field, ArrayRef<Tensor> values)
        : name(field.str()), tensors(values.begin(), values.end()) {}
    template <class T, IfSimple<T> = 0>
    ConnectionDesc(StringRef field, T value);
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<char> scalar;
    TypeTraits traits;
    bool single = false;
  };

  Graph();
  explicit Graph(const Target& target, replication_factor factor = replication_factor(1));
  explicit Graph(const Device& device, replication_factor factor = replication_factor(1));
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const Target& getTarget() const;
  unsigned getReplicationFactor() const;

  // Loads codelets from a .gp file, or compiles them from source with popc; false if they were there before.
  bool addCodelets(StringRef source, CodeletFileType type = CodeletFileType::Auto, StringRef compileFlags = "",
                   StringRef targetName = "");
  bool addCodelets(StringRef source, CodeletFileType type, StringRef compileFlags, std::ostream& compileOutput,
                   StringRef targetName = "");
  bool addCodelets(ArrayRef<std::string> sources, StringRef compileFlags = "", StringRef targetName = "");
  void addCodelets(std::istream& source, StringRef compileFlags = "",
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");
  void addCodelets(std::istream& source, StringRef compileFlags, std::ostream& compileOutput,
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");
  bool hasCodelet(StringRef vertexType) const;

  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& context = {});
  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mapping,
                     const DebugContext& context = {});
  Tensor addLinearlyMappedVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& context = {}) {
    return addVariable(type, shape, VariableMappingMethod::LINEAR, context);
  }
  template <class T, IfSimple<T> = 0>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext& context = {"<const>"}) {
    return addConstantValues(type, shape, values.data(), TypeTraits::make<T>(), values.size(), false, context);
  }
  template <class T, IfSimple<T> = 0>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, T value,
                     const DebugContext& context = {"<const>"}) {
    return addConstantValues(type, shape, &value, TypeTraits::make<T>(), 1, true, context);
  }
  template <class T, IfSimple<T> = 0>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const T* values,
                     const DebugContext& context = {"<const>"}) {
    return addConstantValues(type, shape, values, TypeTraits::make<T>(), elements(shape), false, context);
  }
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const void* values, const TypeTraits& traits,
                     bool broadcast, const DebugContext& context = {"<const>"}) {
    return addConstantValues(type, shape, values, traits, broadcast ? 1 : elements(shape), broadcast, context);
  }
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t value,
                         const DebugContext& context = {"<const>"});
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* values,
                         const DebugContext& context = {"<const>"});
  // The number of the replica, as an unsigned integer.
  Tensor addReplicationIndexConstant(const DebugContext& context = {});

  Tensor clone(const Type& type, const Tensor& tensor, const DebugContext& context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor clone(const Tensor& tensor, const DebugContext& context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES) {
    return clone(tensor.elementType(), tensor, context, method);
  }
  // `count` clones in a new first dimension.
  Tensor cloneN(const Type& type, const Tensor& tensor, std::size_t count, const DebugContext& context = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplication = TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);
  Tensor cloneN(const Tensor& tensor, std::size_t count, const DebugContext& context = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplication = TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION) {
    return cloneN(tensor.elementType(), tensor, count, context, method, duplication);
  }

  ComputeSet addComputeSet(const DebugContext& context = {});
  VertexRef addVertex(ComputeSet computeSet, StringRef vertexType);
  VertexRef addVertex(ComputeSet computeSet, StringRef vertexType, ArrayRef<ConnectionDesc> connections);
  std::size_t getNumVertices() const;
  void connect(const FieldRef& field, const Tensor& tensor);
  void connect(const FieldRef& field, ArrayRef<Tensor> tensors);
  template <class T, IfSimple<T> = 0>
  void connect(const FieldRef& field, T value) {
    connectValues(field, &value, TypeTraits::make<T>(), 1, true);
  }
  template <class T, IfSimple<T> = 0>
  void connect(const FieldRef& field, ArrayRef<T> values) {
    connectValues(field, values.data(), TypeTraits::make<T>(), values.size(), false);
  }
  void setFieldSize(const FieldRef& field, std::size_t size);
  template <class T, IfSimple<T> = 0>
  void setInitialValue(const FieldRef& field, T value) {
    setInitialValues(field, &value, TypeTraits::make<T>(), 1, true);
  }
  template <class T, IfSimple<T> = 0>
  void setInitialValue(const FieldRef& field, ArrayRef<T> values) {
    setInitialValues(field, values.data(), TypeTraits::make<T>(), values.size(), false);
  }
  template <class T, class A, IfSimple<T> = 0>
  void setInitialValue(const FieldRef& field, const std::vector<T, A>& values) {
    setInitialValue(field, ArrayRef<T>(values));
  }
  void setInitialValueHalf(const FieldRef& field, std::uint16_t value);
  template <class T, IfSimple<T> = 0>
  void setInitialValue(const Tensor& tensor, T value) {
    setInitialValues(tensor, &value, TypeTraits::make<T>(), 1, true);
  }
  template <class T, IfSimple<T> = 0>
  void setInitialValue(const Tensor& tensor, ArrayRef<T> values) {
    setInitialValues(tensor, values.data(), TypeTraits::make<T>(), values.size(), false);
  }
  void setInitialValueHalf(const Tensor& tensor, ArrayRef<std::uint16_t> values);
  void setPerfEstimate(const VertexRef& vertex, std::uint64_t cycles, std::uint64_t flops = 0);
  void setPerfEstimate(const VertexRef& vertex, const VertexPerfEstimate& estimate);
  void setCycleEstimate(const VertexRef& vertex, std::uint64_t cycles) { setPerfEstimate(vertex, cycles); }
  VertexPerfEstimate getPerfEstimate(const VertexRef& vertex) const;
  // The function estimates the vertices of this type whose cycles nothing else sets.
  void registerPerfEstimator(StringRef vertexType, PerfEstimateFunc function);
  unsigned getMaxFieldDim(StringRef vertexType, StringRef field, unsigned dimension) const;
  double getMaxVertexFieldValue(StringRef vertexType, StringRef field) const;

  void setTileMapping(VertexRef vertex, unsigned tile);
  void setTileMapping(const Tensor& tensor, unsigned tile);
  void setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping);
  TileToTensorMapping getTileMapping(const Tensor& tensor, bool requireComplete = true) const;
  TileToTensorMapping getTileMapping(const Tensor& tensor, bool* isComplete) const;
  TileToTensorMapping getVariableTileMapping(const Tensor& tensor) const { return getTileMapping(tensor); }
  TileToTensorMapping getTensorTileMapping(std::string name) const;
  Tensor getVariable(VariableRef variable) const;
  bool isConstant(VariableRef variable) const;
  // The intervals joined where they follow each other in a variable, sorted by place in memory.
  std::vector<std::vector<Interval>> getSortedContiguousRegions(const Tensor& tensor, ArrayRef<Interval> regions,
                                                                bool removeAliasedIntervals = false,
                                                                std::vector<std::size_t>* aliases = nullptr) const;
  // Reorders a tensor, and others in the same way, so that its elements follow each other in memory.
  void reorderToSimplify(Tensor* tensor, ArrayRef<Tensor*> others, bool requireSimplestOrder = true) const;
  Tensor findUnbroadcastTensor(const Tensor& tensor) const;

  void createHostWrite(StringRef handle, const Tensor& tensor, bool rearrangeOnHost = false);
  void createHostRead(StringRef handle, const Tensor& tensor, bool rearrangeOnHost = false);
  DataStream addHostToDeviceFIFO(StringRef handle, const Type& type, std::size_t count,
                                 ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE,
                                 const OptionFlags& options = {});
  DataStream addDeviceToHostFIFO(StringRef handle, const Type& type, std::size_t count,
                                 const OptionFlags& options = {});
  RemoteBuffer addRemoteBuffer(StringRef handle, const Type& type, std::size_t count, std::size_t repeats = 1,
                               bool rearrangeOnHost = false, bool optimiseMemory = false);

  Graph createVirtualGraph(unsigned tilesPerIPU);
  Graph createVirtualGraph(unsigned lowerTile, unsigned upperTile);
  Graph createVirtualGraph(const std::vector<unsigned>& tiles);
  Graph createReplicatedGraph(unsigned factor);
  Graph getTopLevelGraph();
  unsigned convertVirtualTileToPhysicalTile(unsigned tile) const;
  // The tensor with a first dimension for the replicas of this graph.
  Tensor getNonReplicatedTensor(const Tensor& tensor) const;

  Function addFunction(const program::Program& program);
  // An argument of a function of the host: the type and number of its elements.
  using HostFunctionArgument = std::tuple<Type, std::size_t>;
  // A function that Engine::connectHostFunction gives its callback.
  HostFunction addHostFunction(StringRef handle, ArrayRef<HostFunctionArgument> inputs,
                               ArrayRef<HostFunctionArgument> outputs);

  // Writes the vertices and variables of the compute sets that programs run, in the DOT language of Graphviz; without
  // programs, of all compute sets.
  void outputComputeGraph(std::ostream& out, ArrayRef<program::Program> programs = {}) const;
  void outputVertexGraph(std::ostream& out, ArrayRef<program::Program> programs = {}) const {
    outputComputeGraph(out, programs);
  }

  // Writes the target, variables, compute sets and vertices. The binary format is our own.
  void serialize(std::ostream& out, SerializationFormat format) const;

  detail::GraphState& state() const { return *state_; }
  std::shared_ptr<detail::GraphState> sharedState() const { return state_; }

 private:
  static std::size_t elements(ArrayRef<std::size_t> shape);
  Tensor addConstantValues(const Type& type, ArrayRef<std::size_t> shape, const void* values, const TypeTraits& traits,
                           std::size_t count, bool broadcast, const DebugContext& context);
  void connectValues(const FieldRef& field, const void* values, const TypeTraits& traits, std::size_t count,
                     bool single);
  void setInitialValues(const FieldRef& field, const void* values, const TypeTraits& traits, std::size_t count,
                        bool single);
  void setInitialValues(const Tensor& tensor, const void* values, const TypeTraits& traits, std::size_t count,
                        bool broadcast);
  Graph virtualGraph(Target target, std::vector<unsigned> tiles) const;

  std::shared_ptr<detail::GraphState> state_;
  Target target_;
  std::vector<unsigned> tiles_;  // the physical tile of each; empty: all, in order
};

template <class T, IfSimple<T>>
Graph::ConnectionDesc::ConnectionDesc(StringRef field, T value)
    : name(field.str()),
      scalar(reinterpret_cast<const char*>(&value), reinterpret_cast<const char*>(&value) + sizeof(value)),
      traits(TypeTraits::make<T>()) {}

}  // namespace poplar

#endif
