// Adds C++ functions to programs as steps with a cost. The functions of the libraries are such steps.
#ifndef poplar_detail_kernel_hpp
#define poplar_detail_kernel_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/detail/archive.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace poplar::detail {

// Row-major data of each tensor's view, in the order that the tensors were passed to addKernel.
struct KernelArguments {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

// A function, and the values that it uses. Both can be written to a file, so the function itself captures nothing.
class Kernel {
 public:
  template <class Function, class... Values>
  static Kernel of(Function function, Values... values) {
    Kernel kernel;
    auto call = std::make_shared<Bound<Values...>>();
    call->function = function;
    call->values = std::tuple<Values...>(std::move(values)...);
    kernel.call_ = std::move(call);
    return kernel;
  }
  void operator()(const KernelArguments& arguments) const { call_->run(arguments); }

  void write(Writer& writer) const { call_->write(writer); }
  static Kernel read(Reader& reader) {
    Kernel kernel;
    CallReader read_call = nullptr;
    transfer(reader, read_call);
    kernel.call_ = read_call(reader);
    return kernel;
  }

 private:
  struct Call {
    virtual ~Call() = default;
    virtual void run(const KernelArguments& arguments) const = 0;
    virtual void write(Writer& writer) const = 0;
  };
  using CallReader = std::shared_ptr<const Call> (*)(Reader& reader);
  template <class... Values>
  struct Bound : Call {
    void (*function)(const KernelArguments&, const Values&...) = nullptr;
    std::tuple<Values...> values;
    void run(const KernelArguments& arguments) const override {
      std::apply([&](const Values&... each) { function(arguments, each...); }, values);
    }
    void write(Writer& writer) const override {
      detail::write(writer, static_cast<CallReader>(&Bound::read));
      detail::write(writer, function);
      detail::write(writer, values);
    }
    static std::shared_ptr<const Call> read(Reader& reader) {
      auto call = std::make_shared<Bound>();
      transfer(reader, call->function, call->values);
      return call;
    }
  };

  std::shared_ptr<const Call> call_;
};

struct KernelCost {
  // Cycles by tile; empty: an estimate from the elements on each tile of the outputs.
  std::vector<std::pair<unsigned, std::uint64_t>> cycles;
  // The name of the vertices in the profile. If empty, it is the name of the compute set.
  std::string vertex;
  // Whether element i of an output depends only on element i of the inputs. If so, an input that is the same view as an
  // output shares its memory. Otherwise the kernel reads a copy of every input that overlaps an output.
  bool elementwise = false;
};

// Adds a compute set of this name to `program`. It reads `inputs`, fills the buffers of `outputs` with their present
// values, runs `kernel`, and writes the outputs back. All tensors must be mapped when the engine is built.
void addKernel(Graph& graph, program::Sequence& program, const DebugContext& name, const std::vector<Tensor>& inputs,
               const std::vector<Tensor>& outputs, Kernel kernel, KernelCost cost = {});

// Runs `body(begin, end)` for parts of [0, count) on the host's cores; parts have at least `grain` elements. An exception
// of a part is thrown again when all parts have ended.
void parallelFor(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace poplar::detail

#endif
