// Builds graph functions with parameters, and calls of them.
#include <poputil/GraphFunction.hpp>
#include <poputil/detail/elements.hpp>

namespace poputil::graphfn {

namespace {

using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Program;
using poplar::program::Sequence;

// Whether a call copies its argument into the parameter, or the parameter into the argument.
bool copiesIn(ArgType type) { return type == InputArg || type == InOutArg; }
bool copiesOut(ArgType type) { return type == OutputArg || type == InOutArg || type == CreatedArg; }

template <class Body>
VoidFunction::Body withoutName(Body body, const poplar::DebugContext &context) {
  return [body, name = context.getNameAndId()](std::vector<Tensor> &parameters, Sequence &sequence) {
    return body(parameters, sequence, name);
  };
}

}  // namespace

VoidFunction::VoidFunction(poplar::Graph &graph, Signature sig, Body f, bool inlined,
                           const poplar::DebugContext &debugContext)
    : graph_(graph), signature_(std::move(sig)), inlined_(inlined), program_(debugContext) {
  for (const auto &parameter : signature_)
    parameters_.push_back(parameter.type == CreatedArg
                              ? Tensor()
                              : graph.clone(parameter.similarTensor, {debugContext, parameter.debugName}));
  f(parameters_, program_);
  for (const auto &parameter : parameters_)
    if (!parameter.valid())
      detail::fail("VoidFunction", "the body did not set a created parameter", "Assign the tensor in the body");
  if (!inlined_) function_ = graph.addFunction(program_);
}

VoidFunction::VoidFunction(poplar::Graph &graph, Signature sig, NamedBody f, bool inlined,
                           const poplar::DebugContext &debugContext)
    : VoidFunction(graph, std::move(sig), withoutName(std::move(f), debugContext), inlined, debugContext) {}

void VoidFunction::operator()(std::vector<Tensor> &args, Sequence &seq, const poplar::DebugContext &debugContext) {
  if (args.size() != signature_.size())
    detail::fail("VoidFunction", "the call has " + std::to_string(args.size()) + " arguments; expected " +
                 std::to_string(signature_.size()), "Pass one for each parameter");
  for (std::size_t i = 0; i != args.size(); ++i)
    if (copiesIn(signature_[i].type)) seq.add(Copy(args[i], parameters_[i], false, debugContext));
  if (inlined_) seq.add(program_);
  else seq.add(poplar::program::Call(function_, debugContext));
  for (std::size_t i = 0; i != args.size(); ++i) {
    if (!copiesOut(signature_[i].type)) continue;
    if (!args[i].valid()) args[i] = graph_.clone(parameters_[i], debugContext);
    seq.add(Copy(parameters_[i], args[i], false, debugContext));
  }
}

ProgramFunction::ProgramFunction(poplar::Graph &graph, Signature sig,
                                 std::function<Program(std::vector<Tensor> &)> f, bool inlined,
                                 const poplar::DebugContext &debugContext)
    : function_(graph, std::move(sig),
                VoidFunction::Body([f](std::vector<Tensor> &parameters, Sequence &sequence) {
                  sequence.add(f(parameters));
                }),
                inlined, debugContext) {}

ProgramFunction::ProgramFunction(
    poplar::Graph &graph, Signature sig,
    std::function<Program(std::vector<Tensor> &, const poplar::DebugNameAndId &)> f, bool inlined,
    const poplar::DebugContext &debugContext)
    : ProgramFunction(graph, std::move(sig),
                      [f, name = debugContext.getNameAndId()](std::vector<Tensor> &parameters) {
                        return f(parameters, name);
                      },
                      inlined, debugContext) {}

Program ProgramFunction::operator()(std::vector<Tensor> &args, const poplar::DebugContext &debugContext) {
  Sequence sequence({}, debugContext);
  function_(args, sequence, debugContext);
  return sequence;
}

namespace {

Signature withResult(Signature signature) {
  signature.push_back(created("result"));
  return signature;
}

VoidFunction::Body storeResult(TensorFunction::Body body) {
  return [body](std::vector<Tensor> &parameters, Sequence &sequence) {
    std::vector<Tensor> arguments(parameters.begin(), parameters.end() - 1);
    parameters.back() = body(arguments, sequence);
    std::copy(arguments.begin(), arguments.end(), parameters.begin());
  };
}

}  // namespace

TensorFunction::TensorFunction(poplar::Graph &graph, Signature sig, Body f, bool inlined,
                               const poplar::DebugContext &debugContext)
    : function_(graph, withResult(std::move(sig)), storeResult(std::move(f)), inlined, debugContext) {}

TensorFunction::TensorFunction(poplar::Graph &graph, Signature sig, NamedBody f, bool inlined,
                               const poplar::DebugContext &debugContext)
    : TensorFunction(graph, std::move(sig),
                     Body([f, name = debugContext.getNameAndId()](std::vector<Tensor> &parameters,
                                                                  Sequence &sequence) {
                       return f(parameters, sequence, name);
                     }),
                     inlined, debugContext) {}

Tensor TensorFunction::operator()(std::vector<Tensor> &args, Sequence &prog,
                                  const poplar::DebugContext &debugContext) {
  std::vector<Tensor> all = args;
  all.emplace_back();
  function_(all, prog, debugContext);
  std::copy(all.begin(), all.end() - 1, args.begin());
  return all.back();
}

}  // namespace poputil::graphfn
