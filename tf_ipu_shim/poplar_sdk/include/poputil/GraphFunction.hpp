// Functions with parameters: the body is built once on parameter tensors; a call copies arguments in and results out.
#ifndef poputil_GraphFunction_hpp
#define poputil_GraphFunction_hpp

#include <functional>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <utility>
#include <vector>

namespace poputil {
namespace graphfn {

enum ArgType { InputArg, OutputArg, InOutArg, CreatedArg };

// One parameter: how it is used, and the tensor whose layout it gets.
struct ArgSig {
  ArgType type;
  poplar::Tensor similarTensor;
  std::string debugName;
  ArgSig(ArgType type, poplar::Tensor tensor, std::string debugName)
      : type(type), similarTensor(std::move(tensor)), debugName(std::move(debugName)) {}
};

inline ArgSig input(poplar::Tensor similar, std::string debugName = "") {
  return {InputArg, std::move(similar), std::move(debugName)};
}
inline ArgSig inout(poplar::Tensor similar, std::string debugName = "") {
  return {InOutArg, std::move(similar), std::move(debugName)};
}
inline ArgSig output(poplar::Tensor similar, std::string debugName = "") {
  return {OutputArg, std::move(similar), std::move(debugName)};
}
// A result that the body creates.
inline ArgSig created(std::string debugName = "") { return {CreatedArg, poplar::Tensor(), std::move(debugName)}; }

using Signature = std::vector<ArgSig>;

// A body without a result.
class VoidFunction {
 public:
  using Body = std::function<void(std::vector<poplar::Tensor> &, poplar::program::Sequence &)>;
  using NamedBody = std::function<void(std::vector<poplar::Tensor> &, poplar::program::Sequence &,
                                       const poplar::DebugNameAndId &)>;
  VoidFunction(VoidFunction &&) = default;
  VoidFunction(poplar::Graph &graph, Signature sig, Body f, bool inlined = false,
               const poplar::DebugContext &debugContext = {});
  VoidFunction(poplar::Graph &graph, Signature sig, NamedBody f, bool inlined = false,
               const poplar::DebugContext &debugContext = {});

  void operator()(std::vector<poplar::Tensor> &args, poplar::program::Sequence &seq,
                  const poplar::DebugContext &debugContext = {});

 private:
  poplar::Graph &graph_;
  Signature signature_;
  bool inlined_;
  poplar::program::Sequence program_;
  poplar::Function function_;
  std::vector<poplar::Tensor> parameters_;
};

// A body that returns its program.
class ProgramFunction {
 public:
  ProgramFunction(poplar::Graph &graph, Signature sig,
                  std::function<poplar::program::Program(std::vector<poplar::Tensor> &)> f, bool inlined = false,
                  const poplar::DebugContext &debugContext = {});
  ProgramFunction(
      poplar::Graph &graph, Signature sig,
      std::function<poplar::program::Program(std::vector<poplar::Tensor> &, const poplar::DebugNameAndId &)> f,
      bool inlined = false, const poplar::DebugContext &debugContext = {});

  poplar::program::Program operator()(std::vector<poplar::Tensor> &args,
                                      const poplar::DebugContext &debugContext = {});

 private:
  VoidFunction function_;
};

// A body that returns one tensor.
class TensorFunction {
 public:
  using Body = std::function<poplar::Tensor(std::vector<poplar::Tensor> &, poplar::program::Sequence &)>;
  using NamedBody = std::function<poplar::Tensor(std::vector<poplar::Tensor> &, poplar::program::Sequence &,
                                                 const poplar::DebugNameAndId &)>;
  TensorFunction(poplar::Graph &graph, Signature sig, Body f, bool inlined = false,
                 const poplar::DebugContext &debugContext = {});
  TensorFunction(poplar::Graph &graph, Signature sig, NamedBody f, bool inlined = false,
                 const poplar::DebugContext &debugContext = {});

  poplar::Tensor operator()(std::vector<poplar::Tensor> &args, poplar::program::Sequence &prog,
                            const poplar::DebugContext &debugContext = {});

 private:
  VoidFunction function_;
};

}  // namespace graphfn
}  // namespace poputil

#endif
