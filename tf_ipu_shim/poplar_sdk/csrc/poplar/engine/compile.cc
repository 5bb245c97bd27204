// Compiles programs to steps with addresses.
#include "poplar/engine/kernel_steps.hpp"
#include "poplar/engine/runner.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace poplar::detail {

namespace {

struct NothingStep : Step {
  void run(Runner&) const override {}
};

struct CompiledSequence : Step {
  std::vector<StepPointer> steps;
  void run(Runner& runner) const override {
    for (const auto& step : steps) step->run(runner);
  }
};

struct CompiledExecute : Step {
  unsigned compute_set = 0;
  std::optional<Access> predicate;
  void run(Runner& runner) const override {
    for (auto& replica : runner.replicas()) {
      const bool result = runner.execute(compute_set, replica);
      if (predicate) std::memset(replica.memory.at(predicate->address, 1), result ? 1 : 0, 1);
    }
  }
};

struct CompiledCopy : Step {
  Moves moves, into, out_of;  // the last two through a buffer, if the views share elements
  std::size_t slot = 0, bytes = 0;
  void run(Runner& runner) const override {
    for (auto& replica : runner.replicas()) {
      if (bytes == 0) {
        moves.copy(replica.memory, replica.memory);
      } else {
        char* buffer = runner.scratch(slot, bytes);
        into.gather(replica.memory, buffer);
        out_of.scatter(buffer, replica.memory);
      }
    }
  }
};

struct CompiledCrossReplica : Step {
  Moves into, out_of;
  std::map<unsigned, unsigned> map;
  std::size_t slot = 0, bytes = 0;
  void run(Runner& runner) const override {
    auto& replicas = runner.replicas();
    char* buffer = runner.scratch(slot, bytes * replicas.size());
    for (const auto& [from, to] : map) into.gather(replicas[from].memory, buffer + from * bytes);
    for (const auto& [from, to] : map) out_of.scatter(buffer + from * bytes, replicas[to].memory);
  }
};

struct CompiledStream : Step {
  DataStream stream;
  Access access;
  std::size_t slot = 0;
  bool to_device = false;
  void run(Runner& runner) const override {
    to_device ? runner.toDevice(stream, access, slot) : runner.fromDevice(stream, access, slot);
  }
};

struct CompiledRemote : Step {
  RemoteBuffer buffer;
  Access access;
  std::optional<Moves> offsets;
  std::size_t slot = 0, rows = 1;
  bool to_device = false;
  void run(Runner& runner) const override {
    const std::size_t row_bytes = access.bytes() / std::max<std::size_t>(rows, 1);
    unsigned number = 0;
    for (auto& replica : runner.replicas()) {
      auto& remote = runner.remoteBuffer(buffer.handle(), number++);
      char* data = runner.scratch(slot, access.bytes());
      std::vector<std::uint32_t> at(rows, 0);
      if (offsets) offsets->gather(replica.memory, reinterpret_cast<char*>(at.data()));
      if (!to_device) access.moves.gather(replica.memory, data);
      for (std::size_t row = 0; row < rows; ++row) {
        if (at[row] >= buffer.getRepeats())
          throw application_runtime_error("Copy: row " + std::to_string(at[row]) + " of remote buffer '" + buffer.handle() +
                                          "' does not exist; it has " + std::to_string(buffer.getRepeats()) + " rows.");
        char* there = remote.data() + at[row] * row_bytes;
        char* here = data + row * row_bytes;
        to_device ? std::memcpy(here, there, row_bytes) : std::memcpy(there, here, row_bytes);
      }
      if (to_device) access.moves.scatter(data, replica.memory);
    }
  }
};

struct CompiledRepeat : Step {
  std::uint64_t count = 0;
  StepPointer body;
  void run(Runner& runner) const override {
    for (std::uint64_t i = 0; i < count; ++i) body->run(runner);
  }
};

struct CompiledWhile : Step {
  StepPointer condition, body;
  Access predicate;
  Type type;
  bool go_on = true;
  void run(Runner& runner) const override {
    for (;;) {
      condition->run(runner);
      if ((runner.scalar(predicate, type) != 0) != go_on) return;
      body->run(runner);
    }
  }
};

struct CompiledSwitch : Step {
  Access control;
  Type type;
  std::map<std::int64_t, StepPointer> cases;
  StepPointer by_default;
  bool boolean = false;  // an If: every value but 0 is 1
  void run(Runner& runner) const override {
    std::int64_t value = runner.scalar(control, type);
    if (boolean) value = value != 0;
    const auto found = cases.find(value);
    (found == cases.end() ? by_default : found->second)->run(runner);
  }
};

struct CompiledCall : Step {
  unsigned function = 0;
  void run(Runner& runner) const override { runner.compiled().functions[function]->run(runner); }
};

struct CompiledPrint : Step {
  PrintStep print;
  Moves moves;
  std::size_t slot = 0, bytes = 0;
  void run(Runner& runner) const override {
    for (auto& replica : runner.replicas()) {
      char* buffer = runner.scratch(slot, bytes + 1);
      moves.gather(replica.memory, buffer);
      printTensor(*runner.print_stream, print, buffer);
    }
  }
};

struct CompiledError : Step {
  std::string message;
  std::optional<Access> predicate;
  Type type;
  StepPointer shown;
  void run(Runner& runner) const override {
    if (predicate && runner.scalar(*predicate, type) == 0) return;
    if (shown) shown->run(runner);
    throw application_runtime_error(message);
  }
};

bool share(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<std::pair<Address, Address>> extents;
  for (const auto& span : b) extents.emplace_back(span.low(), span.high());
  std::sort(extents.begin(), extents.end());
  std::vector<Address> highest;
  for (const auto& [low, high] : extents) highest.push_back(highest.empty() ? high : std::max(high, highest.back()));
  return std::any_of(a.begin(), a.end(), [&](const Span& span) {
    const auto after = std::upper_bound(extents.begin(), extents.end(), std::pair(span.high(), Address{1} << 62));
    return after != extents.begin() && highest[static_cast<std::size_t>(after - extents.begin()) - 1] >= span.low();
  });
}

bool same(const std::vector<Span>& a, const std::vector<Span>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const Span& x, const Span& y) {
           return x.address == y.address && x.length == y.length && (x.step == y.step || x.length == 1);
         });
}

class Compiler {
 public:
  Compiler(Compiled& result, GraphState& graph) : result_(result), graph_(graph) {
    result_.compute_sets.resize(graph.compute_sets.size());
  }

  StepPointer compile(const Program& program) {
    const Node& node = program.node();
    auto& known = done_[&node];
    if (!known) {
      keep_.push_back(program);
      auto step = std::visit([&](const auto& what) { return lower(node, what); }, node.step);
      return done_[&node] = counts_ && isLeaf(node) ? counted(program, step) : step;
    }
    return known;
  }

 private:
  template <class T>
  std::shared_ptr<T> make() {
    return std::make_shared<T>();
  }
  // Whether a step itself costs cycles.
  static bool isLeaf(const Node& node) {
    return std::holds_alternative<ExecuteStep>(node.step) || std::holds_alternative<CopyStep>(node.step) ||
           std::holds_alternative<KernelStep>(node.step);
  }
  StepPointer counted(const Program& program, StepPointer step) {
    auto result = make<CompiledCounted>();
    result->step = std::move(step);
    result->cycles = cyclesOf(graph_, program);
    return result;
  }
  const std::vector<Span> spansOf(const Tensor& tensor, const Node& node) {
    check(tensor, node);
    return viewOf(tensor).spans();
  }
  void checkGraph(const Tensor& tensor, const Node& node) {
    if (tensor.impl().graph.lock().get() != &graph_ && tensor.numElements() > 0)
      throw control_program_error("Program '" + node.name + "' uses a tensor of another graph. Use tensors of the engine's graph.");
  }
  void check(const Tensor& tensor, const Node& node) {
    checkGraph(tensor, node);
    checkMapped(graph_, viewOf(tensor), node.name.empty() ? "a program" : "program '" + node.name + "'");
  }
  // A single value that is read in place.
  Access single(const Tensor& tensor, const Node& node) {
    check(tensor, node);
    std::size_t none = 0;
    return accessTo(viewOf(tensor), typeSize(tensor.elementType()), 1, true, none);
  }

  StepPointer lower(const Node&, const SequenceStep& step) {
    auto result = make<CompiledSequence>();
    for (const auto& program : step.programs) result->steps.push_back(compile(program));
    return result;
  }
  StepPointer lower(const Node& node, const ExecuteStep& step) {
    if (step.compute_set >= graph_.compute_sets.size())
      throw control_program_error("Execute: the compute set is not of this graph. Pass one of addComputeSet.");
    auto& plan = result_.compute_sets[step.compute_set];
    if (!plan) plan = planComputeSet(graph_, step.compute_set);
    auto result = make<CompiledExecute>();
    result->compute_set = step.compute_set;
    if (step.predicate) {
      if (step.predicate->elementType() != BOOL)
        throw control_program_error("Execute: the predicate has type " + step.predicate->elementType().toString().str() +
                                    "; expected bool. Pass a variable of type BOOL.");
      result->predicate = single(*step.predicate, node);
    }
    const auto& programs = graph_.compute_sets[step.compute_set].programs;
    if (programs.empty()) return result;
    auto all = make<CompiledSequence>();
    all->steps.push_back(result);
    const bool counts = std::exchange(counts_, false);  // the cycles of the compute set have theirs
    for (const auto& program : programs) all->steps.push_back(compile(program));
    counts_ = counts;
    return all;
  }
  StepPointer lower(const Node& node, const CopyStep& step) {
    const auto from = spansOf(step.source, node), to = spansOf(step.destination, node);
    auto result = make<CompiledCopy>();
    const std::size_t size = typeSize(step.source.elementType());
    if (share(from, to)) {
      result->into = Moves(from, size);
      result->out_of = Moves(to, size);
      result->bytes = std::max<std::size_t>(1, result->into.bytes());
      result->slot = result_.scratch_slots++;
    } else {
      result->moves = Moves(from, to, size);
    }
    return result;
  }
  StepPointer lower(const Node& node, const CrossReplicaStep& step) {
    auto result = make<CompiledCrossReplica>();
    const std::size_t size = typeSize(step.source.elementType());
    for (const auto& [from, to] : step.replicas)
      if (from >= graph_.replicas || to >= graph_.replicas)
        throw control_program_error("CrossReplicaCopy: replicas " + std::to_string(from) + " and " + std::to_string(to) +
                                    " are not among " + std::to_string(graph_.replicas) + ". Use lower numbers.");
    result->into = Moves(spansOf(step.source, node), size);
    result->out_of = Moves(spansOf(step.destination, node), size);
    result->map = step.replicas;
    result->bytes = result->into.bytes();
    result->slot = result_.scratch_slots++;
    return result;
  }
  Access buffered(const Tensor& tensor, const Node& node) {
    check(tensor, node);
    std::size_t bytes = 0;
    return accessTo(viewOf(tensor), typeSize(tensor.elementType()), 1, false, bytes);
  }
  StepPointer lower(const Node& node, const StreamStep& step) {
    auto result = make<CompiledStream>();
    const auto stream = graph_.streams.find(step.handle);
    if (stream == graph_.streams.end())
      throw control_program_error("Copy: stream '" + step.handle + "' is not of this graph. Use the graph's own streams.");
    result->stream = stream->second;
    result->access = buffered(step.tensor, node);
    result->to_device = step.to_device;
    result->slot = result_.scratch_slots++;
    return result;
  }
  StepPointer lower(const Node& node, const RemoteStep& step) {
    auto result = make<CompiledRemote>();
    const auto buffer = graph_.remote_buffers.find(step.handle);
    if (buffer == graph_.remote_buffers.end())
      throw control_program_error("Copy: remote buffer '" + step.handle + "' is not of this graph. Use the graph's own.");
    result->buffer = buffer->second;
    result->access = buffered(step.tensor, node);
    result->to_device = step.to_device;
    result->slot = result_.scratch_slots++;
    if (step.offset) {
      if (typeSize(step.offset->elementType()) != sizeof(std::uint32_t) || step.offset->elementType() == FLOAT)
        throw control_program_error("Copy: the offsets in remote buffer '" + step.handle +
                                    "' are not unsigned integers. Pass a tensor of type UNSIGNED_INT.");
      result->offsets = Moves(spansOf(*step.offset, node), sizeof(std::uint32_t));
      result->rows = step.offset->numElements();
    }
    return result;
  }
  StepPointer lower(const Node&, const RepeatStep& step) {
    auto result = make<CompiledRepeat>();
    result->count = step.count;
    result->body = compile(step.body);
    return result;
  }
  StepPointer lower(const Node& node, const WhileStep& step) {
    auto result = make<CompiledWhile>();
    result->condition = compile(step.condition);
    result->body = compile(step.body);
    result->predicate = single(step.predicate, node);
    result->type = step.predicate.elementType();
    result->go_on = step.go_on;
    return result;
  }
  StepPointer lower(const Node& node, const IfStep& step) {
    auto result = make<CompiledSwitch>();
    result->control = single(step.predicate, node);
    result->type = step.predicate.elementType();
    result->boolean = true;
    result->cases[1] = compile(step.when_true);
    result->by_default = compile(step.when_false);
    return result;
  }
  StepPointer lower(const Node& node, const SwitchStep& step) {
    auto result = make<CompiledSwitch>();
    result->control = single(step.control, node);
    result->type = step.control.elementType();
    for (const auto& [value, program] : step.cases) result->cases[value] = compile(program);
    result->by_default = compile(step.by_default);
    return result;
  }
  StepPointer lower(const Node&, const CallStep& step) {
    if (step.function >= graph_.functions.size())
      throw control_program_error("Call: the function is not of this graph. Pass one of addFunction.");
    if (result_.functions.size() < graph_.functions.size()) result_.functions.resize(graph_.functions.size());
    auto result = make<CompiledCall>();
    result->function = step.function;
    auto& function = result_.functions[step.function];
    if (!function) {
      const Program body = graph_.functions[step.function];
      result_.functions[step.function] = compile(body);
    }
    return result;
  }
  StepPointer lower(const Node& node, const HostCallStep& step) {
    if (step.function >= graph_.host_functions.size())
      throw control_program_error("Call: the host function is not of this graph. Pass one of addHostFunction.");
    const auto& function = graph_.host_functions[step.function];
    checkArguments(function.handle, "arguments", step.inputs, function.inputs);
    checkArguments(function.handle, "results", step.outputs, function.outputs);
    auto result = make<CompiledHostCall>();
    result->handle = function.handle;
    lowerArguments(*result, node, step.inputs, step.outputs, false);
    return result;
  }
  static void checkArguments(const std::string& handle, const char* what, const std::vector<Tensor>& tensors,
                             const std::vector<Graph::HostFunctionArgument>& expected) {
    bool same = tensors.size() == expected.size();
    for (std::size_t i = 0; same && i < tensors.size(); ++i)
      same = expected[i] == std::make_tuple(tensors[i].elementType(), tensors[i].numElements());
    if (!same)
      throw control_program_error("Call: the " + std::string(what) + " of host function '" + handle +
                                  "' differ in number, type or size from those of addHostFunction. Pass such tensors.");
  }
  StepPointer lower(const Node& node, const StampStep& step) {
    auto result = make<CompiledStamp>();
    result->access = buffered(step.cycles, node);
    return result;
  }
  StepPointer lower(const Node& node, const PrintStep& step) { return print(node, step); }
  StepPointer print(const Node& node, PrintStep step) {
    auto result = make<CompiledPrint>();
    const auto spans = spansOf(step.tensor, node);
    if (step.title.empty()) step.title = node.name;
    if (step.title.empty() && !spans.empty()) step.title = graph_.variableAt(spans[0].address).name;
    result->moves = Moves(spans, typeSize(step.tensor.elementType()));
    result->bytes = result->moves.bytes();
    result->slot = result_.scratch_slots++;
    result->print = std::move(step);
    return result;
  }
  StepPointer lower(const Node& node, const ErrorStep& step) {
    auto result = make<CompiledError>();
    result->message = step.message;
    if (step.predicate) {
      result->predicate = single(*step.predicate, node);
      result->type = step.predicate->elementType();
    }
    if (step.shown) result->shown = print(node, {step.message, *step.shown, {}});
    return result;
  }
  StepPointer lower(const Node& node, const KernelStep& step) {
    auto result = make<CompiledKernel>();
    result->name = node.name;
    result->kernel = step.kernel;
    lowerArguments(*result, node, step.inputs, step.outputs, step.cost.elementwise);
    return result;
  }
  void lowerArguments(CompiledKernel& result, const Node& node, const std::vector<Tensor>& inputs,
                      const std::vector<Tensor>& outputs, bool elementwise) {
    std::vector<std::vector<Span>> written;
    for (const Tensor& output : outputs) written.push_back(spansOf(output, node));
    for (const Tensor& input : inputs) {
      const auto spans = spansOf(input, node);
      const bool in_place = std::all_of(written.begin(), written.end(), [&](const auto& output) {
        return !share(spans, output) || (elementwise && same(spans, output));
      });
      result.inputs.push_back(accessTo(viewOf(input), typeSize(input.elementType()), 1, in_place, result.bytes));
    }
    for (const Tensor& output : outputs)
      result.outputs.push_back(accessTo(viewOf(output), typeSize(output.elementType()), 1, true, result.bytes));
    result.slot = result_.scratch_slots++;
  }
  StepPointer lower(const Node&, const NamedStep& step) { return compile(step.body); }
  StepPointer lower(const Node& node, const NoStep& step) {
    if (step.tensor) checkGraph(*step.tensor, node);
    return make<NothingStep>();
  }

  Compiled& result_;
  GraphState& graph_;
  bool counts_ = graph_.counts_cycles;
  std::unordered_map<const Node*, StepPointer> done_;
  std::vector<Program> keep_;  // nodes stay at their addresses
};

}  // namespace

std::shared_ptr<const Compiled> compileProgram(std::shared_ptr<GraphState> graph, ArrayRef<Program> programs) {
  auto result = std::make_shared<Compiled>();
  result->graph = std::move(graph);
  // An executable that is stored has the estimates, not the functions.
  for (auto& vertex : result->graph->vertices) vertex.estimate = registeredEstimate(*result->graph, vertex);
  Compiler compiler(*result, *result->graph);
  for (const auto& program : programs) result->programs.push_back(compiler.compile(program));
  result->sources.assign(programs.begin(), programs.end());
  for (const auto* tensors : {&result->graph->host_writes, &result->graph->host_reads})
    for (const auto& [handle, tensor] : *tensors)
      checkMapped(*result->graph, viewOf(tensor), "the host access '" + handle + "'");
  return result;
}

}  // namespace poplar::detail
