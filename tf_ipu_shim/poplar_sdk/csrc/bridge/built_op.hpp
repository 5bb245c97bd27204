// A user's op: the graph and program that its library has built, and engines that run it.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_BUILT_OP_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_BUILT_OP_HPP_

#include "failure.hpp"
#include "op_call.hpp"
#include "user_library.hpp"

#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tf_ipu_shim {

class BuiltOp {
 public:
  // `earlier` are the built ops of the same program, whose codelets it knows. Throws a Failure if the library cannot be
  // used, fails, or builds something else than TensorFlow was told.
  BuiltOp(OpCall call, const std::vector<const BuiltOp*>& earlier);

  const OpCall& call() const { return call_; }
  const poplar::Graph& graph() const { return graph_; }
  const poplar::program::Program& program() const { return program_; }
  const std::vector<poplar::Tensor>& inputs() const { return inputs_; }
  const std::vector<poplar::Tensor>& outputs() const { return outputs_; }  // invalid ones are zeros
  const std::vector<bool>& allocated() const { return allocated_; }

  // Says which op of the script this is, as messages name it.
  void locate(const std::string& op);
  void run(const void* const* inputs, void* const* outputs);

 private:
  // Runs the op, one call at a time, in separate memory that keeps the op's state between runs.
  std::unique_ptr<poplar::Engine> takeEngine();
  void runIn(poplar::Engine& engine, const void* const* inputs, void* const* outputs) const;
  void addInputs(const UserLibrary& library, const std::vector<const BuiltOp*>& earlier);
  poplar::Tensor unallocatedInput(std::size_t index, const std::vector<const BuiltOp*>& earlier);
  OpCall::Origin originOf(std::size_t input) const;
  void checkOutputs(const std::string& what) const;
  Failure inScript(const Failure& failure);

  OpCall call_;
  poplar::Graph graph_;
  std::vector<poplar::Tensor> inputs_, outputs_;
  std::vector<bool> allocated_;
  poplar::program::Program program_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<poplar::Engine>> idle_;
  std::string located_;
};

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_BUILT_OP_HPP_
