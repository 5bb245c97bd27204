// Compiled steps that call C++ functions of libraries or the host, and those that read or count cycles.
#ifndef poplar_csrc_kernel_steps_hpp
#define poplar_csrc_kernel_steps_hpp

#include "poplar/engine/runner.hpp"

#include <string>
#include <vector>

namespace poplar::detail {

struct CompiledKernel : Step {
  std::string name;
  std::vector<Access> inputs, outputs;
  Kernel kernel;
  std::size_t slot = 0, bytes = 0;
  void run(Runner& runner) const override {
    unsigned number = 0;
    for (auto& replica : runner.replicas()) {
      char* buffer = runner.scratch(slot, bytes);
      KernelArguments arguments;
      for (const auto& input : inputs) {
        input.load(replica.memory, buffer);
        arguments.inputs.push_back(input.pointer(replica.memory, buffer));
      }
      for (const auto& output : outputs) {
        output.load(replica.memory, buffer);
        arguments.outputs.push_back(output.pointer(replica.memory, buffer));
      }
      call(runner, number++, arguments);
      for (const auto& output : outputs) output.store(replica.memory, buffer);
    }
  }
  virtual void call(Runner& runner, unsigned, const KernelArguments& arguments) const {
    runner.floatChecks().watch([&] { kernel(arguments); }, [&] { return "compute set '" + name + "'"; });
  }
};

struct CompiledHostCall : CompiledKernel {
  std::string handle;
  void call(Runner& runner, unsigned replica, const KernelArguments& arguments) const override {
    runner.callHost(handle, replica, arguments);
  }
};

struct CompiledStamp : Step {
  Access access;
  void run(Runner& runner) const override {
    const std::uint32_t words[] = {static_cast<std::uint32_t>(runner.cycles),
                                   static_cast<std::uint32_t>(runner.cycles >> 32)};
    for (auto& replica : runner.replicas()) access.moves.scatter(reinterpret_cast<const char*>(words), replica.memory);
  }
};

// A step, and its cycles.
struct CompiledCounted : Step {
  StepPointer step;
  std::uint64_t cycles = 0;
  void run(Runner& runner) const override {
    step->run(runner);
    runner.cycles += cycles;
  }
};

}  // namespace poplar::detail

#endif
