// Functions that control a tile's floating-point unit, of which only setStochasticRounding(false) is supported. Half
// rounds to the nearest value and overflows to infinity; engine options select the exceptions. Every other call throws
// poplar_error.
#ifndef poplar_CSRFunctions_hpp
#define poplar_CSRFunctions_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poplar {

struct FloatingPointBehaviour {
  FloatingPointBehaviour() = default;
  FloatingPointBehaviour(bool invalid, bool divisionByZero, bool overflow, bool stochasticRounding, bool nanOnOverflow)
      : inv(invalid), div0(divisionByZero), oflo(overflow), esr(stochasticRounding), nanoo(nanOnOverflow) {}
  FloatingPointBehaviour operator!() const { return {!inv, !div0, !oflo, !esr, !nanoo}; }

  bool inv = true, div0 = true, oflo = true, esr = true, nanoo = true;
};

void setFloatingPointBehaviour(Graph& graph, program::Sequence& program, const FloatingPointBehaviour& behaviour,
                               const DebugContext& context = {});
void setFloatingPointBehaviour(Graph& graph, program::Sequence& program, const Tensor& behaviour,
                               const DebugContext& context = {});
Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence& program, const FloatingPointBehaviour& clear,
                                          const FloatingPointBehaviour& set, const DebugContext& context = {});
void setStochasticRounding(Graph& graph, program::Sequence& program, bool enable, const DebugContext& context = {});

}  // namespace poplar

#endif
