// Defines the steps of a program as structs: copies, loops, branches, calls, compute sets and kernels.
#ifndef poplar_csrc_node_hpp
#define poplar_csrc_node_hpp

#include <poplar/Program.hpp>
#include <poplar/detail/kernel.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace poplar::detail {

using program::Program;

struct SequenceStep {
  std::vector<Program> programs;
};
struct ExecuteStep {
  unsigned compute_set;
  std::optional<Tensor> predicate;
};
struct CopyStep {
  Tensor source, destination;
};
struct StreamStep {
  std::string handle;
  Tensor tensor;
  bool to_device;
};
struct RemoteStep {
  std::string handle;
  Tensor tensor;
  std::optional<Tensor> offset;
  bool to_device;
};
struct CrossReplicaStep {
  Tensor source, destination;
  std::map<unsigned, unsigned> replicas;
};
struct RepeatStep {
  std::uint64_t count;
  Program body;
};
struct WhileStep {
  Program condition;
  Tensor predicate;
  bool go_on;  // the value of the predicate that repeats the body
  Program body;
};
struct IfStep {
  Tensor predicate;
  Program when_true, when_false;
};
struct SwitchStep {
  Tensor control;
  std::vector<std::pair<std::int32_t, Program>> cases;
  Program by_default;
};
struct CallStep {
  unsigned function;
};
struct PrintStep {
  std::string title;
  Tensor tensor;
  PrintTensorFmt format;
};
struct ErrorStep {
  std::string message;
  std::optional<Tensor> predicate, shown;
};
struct HostCallStep {
  unsigned function;
  std::vector<Tensor> inputs, outputs;
};
// Writes the cycles so far.
struct StampStep {
  Tensor cycles;
};
struct KernelStep {
  std::vector<Tensor> inputs, outputs;
  Kernel kernel;
  KernelCost cost;
};
struct NamedStep {
  Program body;
};
// Steps with a meaning on an IPU only: a sync, and a mark that a tensor's values are not needed.
struct NoStep {
  std::optional<Tensor> tensor;  // of the engine's graph
};

struct Node {
  std::string name;
  std::variant<SequenceStep, ExecuteStep, CopyStep, StreamStep, RemoteStep, CrossReplicaStep, RepeatStep, WhileStep,
               IfStep, SwitchStep, CallStep, HostCallStep, StampStep, PrintStep, ErrorStep, KernelStep, NamedStep, NoStep>
      step;
};

}  // namespace poplar::detail

#endif
