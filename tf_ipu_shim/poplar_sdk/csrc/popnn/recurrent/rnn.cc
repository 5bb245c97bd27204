// Recurrent layers of the caller's own cells: a loop over the steps with slices of the sequences.
#include <popnn/Rnn.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>

#include "poputil/library.hpp"

namespace popnn {
namespace rnn {

using namespace poputil::library;
using poplar::DebugContext;
using poplar::Graph;

namespace {

// Sequences as the loop sees them, at one step.
class Steps {
 public:
  Steps(Graph &graph, std::size_t count, const Tensor &position, Sequence &body, const DebugContext &name)
      : graph_(graph), count_(count), position_(position), body_(body), name_(name) {}

  // The present slice of a sequence, of the shape {multiple, ...}.
  Tensor read(const Tensor &sequence) const {
    return popops::dynamicSlice(graph_, inSteps(sequence), position_, {1}, {1}, body_, {name_, "read"}).squeeze({1});
  }
  void write(const Tensor &slice, const Tensor &sequence, Sequence &prog) const {
    auto view = inSteps(sequence);
    std::vector<std::size_t> shape = view.shape();
    shape[1] = 1;
    popops::dynamicUpdate(graph_, view, slice.reshape(shape), position_, {1}, {1}, prog, {name_, "write"});
  }

 private:
  // {multiple * steps, ...} as {multiple, steps, ...}.
  Tensor inSteps(const Tensor &sequence) const {
    if (sequence.rank() == 0 || sequence.dim(0) % count_ != 0)
      poputil::detail::fail("popnn::rnn::Rnn", "a tensor has the shape " +
                            poputil::detail::describeShape(sequence.shape()) + "; expected " + std::to_string(count_) +
                            " steps", "Pass tensors of whole sequences");
    return sequence.reshapePartial(0, 1, {sequence.dim(0) / count_, count_});
  }

  Graph &graph_;
  std::size_t count_;
  Tensor position_;
  Sequence &body_;
  DebugContext name_;
};

Tensor inputOf(const Tensor &slice) { return slice.dim(0) == 1 ? slice.squeeze({0}) : slice; }

}  // namespace

std::vector<Tensor> Rnn(Graph &graph, const RnnParams &params, bool reverse, const std::vector<Tensor> &initState,
                        const StateSequence &stateSequence, const std::vector<Tensor> &inputs, const Tensor *interimIn,
                        Tensor *interimOut, const std::vector<Tensor> &outputs, const std::vector<Tensor> &created,
                        Sequence &prog, const LoopBodyType &loopFn, unsigned, OptionFlags &options,
                        const DebugContext &debugContext) {
  constexpr auto FUNCTION = "popnn::rnn::Rnn";
  checkOptions(FUNCTION, options, rnn_options);
  if (params.variableTimeSteps())
    poputil::detail::fail(FUNCTION, "the sequences have different lengths, which it does not support",
                          "Make RnnParams without varTimeSteps and mask the steps in the cell");
  const std::size_t count = params.maxTimeSteps;
  if (count == 0) poputil::detail::fail(FUNCTION, "there are no steps", "Pass RnnParams with at least one step");
  const DebugContext name(debugContext, "Rnn");
  std::vector<Tensor> state;
  for (const auto &initial : initState) {
    state.push_back(graph.clone(initial, {name, "state"}));
    prog.add(poplar::program::Copy(initial, state.back(), false, {name, "initialState"}));
  }
  const auto begin = poputil::detail::constantScalar(graph, poplar::UNSIGNED_INT, 0, {name, "begin"}).reshape({1});
  const auto body = [&](const Tensor &counter) {
    Sequence loop({}, {name, "step"});
    Tensor position = counter;
    if (reverse) {
      using namespace popops::expr;
      position = popops::map(graph, Sub(Const(static_cast<unsigned>(count - 1)), _1), {counter}, loop, {name, "from"});
    }
    const Steps steps(graph, count, position, loop, name);
    RnnSlice slice;
    for (const auto &input : inputs) slice.inputs.push_back(inputOf(steps.read(input)));
    if (interimIn) slice.interimIn = steps.read(*interimIn);
    if (interimOut) slice.interimOut = steps.read(*interimOut);
    for (const auto &output : outputs) slice.outputs.push_back(steps.read(output));
    std::vector<Tensor> made(created.size());
    loop.add(loopFn(graph, {begin, position, {}}, {}, state, slice, made, &prog, poplar::DebugNameAndId("Rnn")));
    for (std::size_t i = 0; i != outputs.size(); ++i) steps.write(slice.outputs[i], outputs[i], loop);
    for (std::size_t i = 0; i != created.size(); ++i)
      if (made[i].valid()) steps.write(made[i], created[i], loop);
    if (interimOut) steps.write(slice.interimOut, *interimOut, loop);
    if (stateSequence.output.valid()) steps.write(state.at(stateSequence.stateIndex), stateSequence.output, loop);
    return loop;
  };
  const auto loop = popops::countedLoop(graph, count, body, name);
  prog.add(loop);
  return state;
}

}  // namespace rnn
}  // namespace popnn
