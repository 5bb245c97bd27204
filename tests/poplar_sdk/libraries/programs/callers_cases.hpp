// Cases of functions that take the caller's own cell or compute set.
#pragma once

#include <popnn/NonLinearity.hpp>
#include <popnn/Rnn.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>

#include "cases.hpp"

// A cell with state = state / 2 + x * step, an output of twice the state, and further ones of two sequences.
inline void ownCell(Case &c, bool reverse) {
  using namespace popops::expr;
  const popnn::rnn::RnnParams params(FLOAT, 3, 5, {4, 4});
  const auto x = c.input("x", FLOAT, {5, 3, 4}), start = c.input("start", FLOAT, {1, 3, 4});
  const auto out = popnn::rnn::createOutputTensor(c.graph, params, 1, {"out"});
  const auto pair = popnn::rnn::createOutputTensor(c.graph, params, 2, 1, {"pair"});
  const auto made = popnn::rnn::createOutputTensor(c.graph, params, 1, {"made"});
  const popnn::rnn::StateSequence states{popnn::rnn::createOutputTensor(c.graph, params, 1, {"states"}), 0};
  OptionFlags options;
  const auto cell = [&](Graph &graph, const popnn::rnn::TimeStepState &time, const popnn::rnn::RnnBatchwiseFlags &flags,
                        std::vector<Tensor> &state, const popnn::rnn::RnnSlice &slice, std::vector<Tensor> &created,
                        Sequence *, const DebugNameAndId &) {
    Sequence prog;
    if (flags.valid()) throw std::runtime_error("there are sequences of different lengths");
    const auto step = popops::cast(graph, time.counter.reshape({}), FLOAT, prog);
    const auto now = state[0].squeeze({0});
    popops::mapInPlace(graph, Add(Mul(_1, Const(0.5f)), Mul(_2, _3)), {now, slice.inputs[0], step}, prog);
    popops::mapWithOutput(graph, Mul(_1, Const(2.f)), {state[0]}, slice.outputs[0], prog);
    for (unsigned i = 0; i != 2; ++i)
      popops::mapWithOutput(graph, Add(_1, Const(float(i))), {now}, slice.outputs[1][i], prog);
    created[0] = popops::map(graph, Neg(_1), {now}, prog);
    return prog;
  };
  const auto last = popnn::rnn::Rnn(c.graph, params, reverse, {start}, states, {x}, nullptr, nullptr, {out, pair},
                                    {made}, c.prog, cell, 1, options);
  c.output("out", out);
  c.output("pair", pair);
  c.output("made", made);
  c.output("states", states.output);
  c.output("last", last[0]);
  c.output("start after it", start);
}

inline std::vector<NamedCase> callersCases() {
  return {
      {"own cell", [](Case &c) { ownCell(c, false); }},
      {"own cell reversed", [](Case &c) { ownCell(c, true); }},
      {"own cell refused",
       [](Case &c) {
         const auto lengths = c.data("lengths", UNSIGNED_INT, {3}, {5, 2, 3});
         const popnn::rnn::RnnParams params(FLOAT, 3, 5, lengths, {4, 4});
         OptionFlags options;
         c.error("lengths", [&] {
           popnn::rnn::Rnn(c.graph, params, false, {}, {}, {}, nullptr, nullptr, {}, {}, c.prog, {}, 1, options);
         });
       }},
      {"shifted sequence",
       [](Case &c) {
         const popnn::rnn::RnnParams params(FLOAT, 3, 5, {4, 4});
         const auto x = c.input("x", FLOAT, {5, 3, 4}), first = c.input("first", FLOAT, {3, 4});
         c.output("shifted", popnn::rnn::shiftRnnTensor(c.graph, params, x, first, c.prog, 1));
       }},
      {"compute sets of the caller",
       [](Case &c) {
         const auto x = c.input("x", FLOAT, {4, 6}), y = c.input("y", FLOAT, {4, 6});
         std::vector<ComputeSet> css;
         const auto sum = popops::reduce(c.graph, x, {0}, popops::Operation::ADD, css);
         const auto most = popops::reduce(c.graph, x, FLOAT, {1}, popops::Operation::MAX, css);
         const auto written = c.graph.addVariable(FLOAT, {4}, "written");
         popops::reduceWithOutput(c.graph, y, written, {1}, popops::Operation::MUL, css);
         for (const auto &set : css) c.prog.add(program::Execute(set));
         auto set = c.graph.addComputeSet("the caller's");
         const auto halves = popops::cast(c.graph, x, HALF, set);
         const auto back = c.graph.clone(x);
         popops::cast(c.graph, x, back, set);
         popnn::nonLinearityInPlace(c.graph, popnn::NonLinearityType::RELU, y, set);
         const auto gradient = popnn::nonLinearityInputGradient(c.graph, popnn::NonLinearityType::TANH, x, x, set);
         const auto filled = c.graph.addVariable(FLOAT, {2, 6}, "filled"), zeros = c.input("zeros", FLOAT, {12});
         for (unsigned row = 0; row != 2; ++row) c.graph.setTileMapping(filled[row], row);
         popops::fill(c.graph, filled, c.graph.getTileMapping(filled), set, 7u);
         popops::fill(c.graph, filled, 1, set, -2.5f);
         popops::zero(c.graph, zeros, {{1, 3}, {10, 12}}, 0, set);
         c.prog.add(program::Execute(set));
         c.output("filled", filled);
         c.output("zeros", zeros);
         c.output("sum", sum);
         c.output("most", most);
         c.output("written", written);
         c.output("halves", halves);
         c.output("back", back);
         c.output("relu", y);
         c.output("gradient", gradient);
       }},
  };
}
