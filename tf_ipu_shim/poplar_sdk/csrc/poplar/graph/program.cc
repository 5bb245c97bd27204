// Constructs programs and checks their arguments.
#include "poplar/graph/node.hpp"
#include "poplar/graph/state.hpp"

#include <poplar/detail/compute_sets.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {

namespace program {

using namespace detail;

namespace {

template <class Step>
std::shared_ptr<Node> make(const DebugContext& context, Step step) {
  return std::make_shared<Node>(Node{context.getPathName(), std::move(step)});
}

void checkSame(const char* step, const Tensor& source, const Tensor& destination) {
  if (source.elementType() != destination.elementType() || source.numElements() != destination.numElements())
    throw control_program_error(std::string(step) + ": the source is " + source.elementType().toString().str() + " of shape " +
                       source.shapeToString() + " and the destination " + destination.elementType().toString().str() +
                       " of shape " + destination.shapeToString() +
                       "; expected the same type and number of elements. Cast or reshape one of them.");
}

void checkDestination(const char* step, const Tensor& destination) {
  if (destination.containsConstant())
    throw control_program_error(std::string(step) + ": the destination contains constants. Copy to variables.");
  if (destination.containsAliases())
    throw control_program_error(std::string(step) +
                                ": the destination has an element more than once. Copy to a view without aliases.");
}

void checkStream(const Tensor& tensor, Type type, std::size_t count, const std::string& handle) {
  if (tensor.elementType() != type || tensor.numElements() != count)
    throw control_program_error("Copy: stream '" + handle + "' has " + std::to_string(count) + " elements of " +
                                type.toString().str() + " and the tensor " + std::to_string(tensor.numElements()) +
                                " of " + tensor.elementType().toString().str() +
                                "; expected the same. Create the stream with the tensor's type and size.");
}

void checkDirection(const DataStream& stream, DataStreamType expected) {
  if (stream.type() != expected)
    throw control_program_error("Copy: stream '" + stream.handle() +
                                "' goes the other way. Use a stream of the other direction.");
}

void checkSingle(const char* step, const Tensor& tensor) {
  if (tensor.numElements() != 1)
    throw control_program_error(std::string(step) + ": the predicate has shape " + tensor.shapeToString() +
                                "; expected one element. Pass such a tensor.");
  if (tensor.elementType().isFloatingPoint())
    throw control_program_error(std::string(step) + ": the predicate has type " + tensor.elementType().toString().str() +
                                "; expected bool or an integer. Compare it, or cast it.");
}

void checkRemote(const Tensor& tensor, const RemoteBuffer& buffer, const std::optional<Tensor>& offset) {
  const std::size_t rows = offset ? offset->numElements() : 1;
  if (tensor.elementType() != buffer.elementType() || tensor.numElements() != buffer.numElements() * rows)
    throw control_program_error("Copy: remote buffer '" + buffer.handle() + "' has rows of " +
                                std::to_string(buffer.numElements()) + " elements of " +
                                buffer.elementType().toString().str() + " and the tensor shape " +
                                tensor.shapeToString() + " for " + std::to_string(rows) +
                                " rows; expected as many elements. Reshape the tensor.");
}

std::shared_ptr<Node> remote(const RemoteBuffer& buffer, Tensor tensor, std::optional<Tensor> offset, bool to_device,
                             const DebugContext& context) {
  checkRemote(tensor, buffer, offset);
  if (to_device) checkDestination("Copy", tensor);
  return make(context, RemoteStep{buffer.handle(), std::move(tensor), std::move(offset), to_device});
}

}  // namespace

Program::Program() : node_(std::make_shared<Node>(Node{"", SequenceStep{}})) {}

bool Program::isEmpty() const {
  const auto* sequence = std::get_if<SequenceStep>(&node_->step);
  if (!sequence) return false;
  for (const auto& program : sequence->programs)
    if (!program.isEmpty()) return false;
  return true;
}

Sequence::Sequence(const DebugContext& context) : Program(make(context, SequenceStep{})) {}
Sequence::Sequence(std::initializer_list<Program> programs, const DebugContext& context)
    : Program(make(context, SequenceStep{programs})) {}

namespace {
// The programs of a sequence that nothing else refers to.
std::vector<Program>& own(std::shared_ptr<Node>& node) {
  if (node.use_count() > 1) node = std::make_shared<Node>(*node);
  return std::get<SequenceStep>(node->step).programs;
}
}  // namespace

void Sequence::add(const Program& program) {
  const Program added = program;
  own(node_).push_back(added);
}
void Sequence::add_front(const Program& program) {
  const Program added = program;
  auto& programs = own(node_);
  programs.insert(programs.begin(), added);
}

namespace {
// The number of a reference that a function of Graph returned.
template <class Reference>
unsigned idOf(const char* step, const char* function, const Reference& reference) {
  if (!reference.isNull()) return reference.getId();
  throw control_program_error(std::string(step) + ": the reference is empty. Pass one of " + function + ".");
}
}  // namespace

Execute::Execute(ComputeSet computeSet, const DebugContext& context)
    : Program(make(context, ExecuteStep{idOf("Execute", "addComputeSet", computeSet), std::nullopt})) {}
Execute::Execute(ComputeSet computeSet, Tensor outPredicate, const DebugContext& context)
    : Program(make(context, ExecuteStep{idOf("Execute", "addComputeSet", computeSet), outPredicate})) {
  checkSingle("Execute", outPredicate);
}

Copy::Copy(Tensor source, Tensor destination, bool, const DebugContext& context)
    : Program(make(context, CopyStep{source, destination})) {
  checkSame("Copy", source, destination);
  checkDestination("Copy", destination);
}
Copy::Copy(const DataStream& source, Tensor destination, bool, const DebugContext& context)
    : Program(make(context, StreamStep{source.handle(), destination, true})) {
  checkDirection(source, DataStreamType::HostToDeviceFIFO);
  checkStream(destination, source.elementType(), source.numElements(), source.handle());
  checkDestination("Copy", destination);
}
Copy::Copy(Tensor source, const DataStream& destination, bool, const DebugContext& context)
    : Program(make(context, StreamStep{destination.handle(), source, false})) {
  checkDirection(destination, DataStreamType::DeviceToHostFIFO);
  checkStream(source, destination.elementType(), destination.numElements(), destination.handle());
}
Copy::Copy(const RemoteBuffer& source, Tensor destination, const DebugContext& context)
    : Program(remote(source, std::move(destination), std::nullopt, true, context)) {}
Copy::Copy(const RemoteBuffer& source, Tensor destination, Tensor offset, const DebugContext& context)
    : Program(remote(source, std::move(destination), std::move(offset), true, context)) {}
Copy::Copy(Tensor source, const RemoteBuffer& destination, const DebugContext& context)
    : Program(remote(destination, std::move(source), std::nullopt, false, context)) {}
Copy::Copy(Tensor source, const RemoteBuffer& destination, Tensor offset, const DebugContext& context)
    : Program(remote(destination, std::move(source), std::move(offset), false, context)) {}

CrossReplicaCopy::CrossReplicaCopy(Tensor source, Tensor destination, std::map<unsigned, unsigned> replicaMap,
                                   const DebugContext& context)
    : Program(make(context, CrossReplicaStep{source, destination, std::move(replicaMap)})) {
  checkSame("CrossReplicaCopy", source, destination);
  checkDestination("CrossReplicaCopy", destination);
}

WriteUndef::WriteUndef(Tensor tensor, const DebugContext& context) : Program(make(context, NoStep{tensor})) {
  checkDestination("WriteUndef", tensor);
}

AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(Tensor tensor, const DebugContext& context)
    : Program(make(context, NoStep{tensor})) {
  tensor.impl();  // throws an error if the tensor is empty
}

Repeat::Repeat(std::uint64_t count, const Program& body, const DebugContext& context)
    : Program(make(context, RepeatStep{count, body})) {}

RepeatWhile::RepeatWhile(const Program& condition, Tensor predicate, bool goOn, const Program& body,
                         const DebugContext& context)
    : Program(make(context, WhileStep{condition, predicate, goOn, body})) {
  checkSingle("RepeatWhile", predicate);
}

If::If(Tensor predicate, const Program& whenTrue, const Program& whenFalse, const DebugContext& context)
    : Program(make(context, IfStep{predicate, whenTrue, whenFalse})) {
  checkSingle("If", predicate);
}

Switch::Switch(Tensor control, const DebugContext& context) : Switch(std::move(control), Cases{}, Program(), context) {}
Switch::Switch(Tensor control, const Program& byDefault, const DebugContext& context)
    : Switch(std::move(control), Cases{}, byDefault, context) {}
Switch::Switch(Tensor control, const Cases& cases, const DebugContext& context)
    : Switch(std::move(control), cases, Program(), context) {}
Switch::Switch(Tensor control, const Cases& cases, const Program& byDefault, const DebugContext& context)
    : Program(make(context, SwitchStep{control, {}, byDefault})) {
  checkSingle("Switch", control);
  for (const auto& [value, program] : cases) add(value, program);
}

Switch& Switch::add(std::int32_t value, const Program& program) {
  const Program added = program;
  if (node_.use_count() > 1) node_ = std::make_shared<Node>(*node_);
  auto& cases = std::get<SwitchStep>(node_->step).cases;
  for (const auto& known : cases)
    if (known.first == value)
      throw control_program_error("Switch::add: case " + std::to_string(value) + " was added before. Add each case once.");
  cases.emplace_back(value, added);
  return *this;
}

Call::Call(Function function, const DebugContext& context) : Program(make(context, CallStep{idOf("Call", "addFunction", function)})) {}

Call::Call(HostFunction function, ArrayRef<Tensor> arguments, ArrayRef<Tensor> results, const DebugContext& context)
    : Program(make(context, HostCallStep{idOf("Call", "addHostFunction", function), {arguments.begin(), arguments.end()},
                                         {results.begin(), results.end()}})) {
  for (const Tensor& result : results) checkDestination("Call", result);
}

PrintTensor::PrintTensor(Tensor tensor, const DebugContext& context)
    : PrintTensor("", std::move(tensor), PrintTensorFmt(), context) {}
PrintTensor::PrintTensor(Tensor tensor, const PrintTensorFmt& format, const DebugContext& context)
    : PrintTensor("", std::move(tensor), format, context) {}
PrintTensor::PrintTensor(StringRef title, Tensor tensor, const DebugContext& context)
    : PrintTensor(title, std::move(tensor), PrintTensorFmt(), context) {}
PrintTensor::PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& format, const DebugContext& context)
    : Program(make(context, PrintStep{title.str(), std::move(tensor), format})) {}

Sync::Sync(SyncType, const DebugContext& context) : Program(make(context, NoStep{})) {}

ErrorProgram::ErrorProgram(StringRef message, Tensor debugTensor, const DebugContext& context)
    : Program(make(context, ErrorStep{message.str(), std::nullopt, std::move(debugTensor)})) {}

Abort::Abort(const DebugContext& context) : Abort("Abort", context) {}
Abort::Abort(StringRef message, const DebugContext& context)
    : Program(make(context, ErrorStep{message.str(), std::nullopt, std::nullopt})) {}
AbortOnCondition::AbortOnCondition(Tensor predicate, const DebugContext& context)
    : AbortOnCondition(std::move(predicate), "AbortOnCondition", context) {}
AbortOnCondition::AbortOnCondition(Tensor predicate, StringRef message, const DebugContext& context)
    : Program(make(context, ErrorStep{message.str(), predicate, std::nullopt})) {
  checkSingle("AbortOnCondition", predicate);
}

AssignName::AssignName(StringRef name, const Program& program, const DebugContext&)
    : Program(std::make_shared<Node>(Node{name.str(), NamedStep{program}})) {}

}  // namespace program

namespace detail {

void addKernel(Graph& graph, program::Sequence& program, const DebugContext& name, const std::vector<Tensor>& inputs,
               const std::vector<Tensor>& outputs, Kernel kernel, KernelCost cost) {
  const std::string function = name.getPathName();
  for (const Tensor& input : inputs) viewIn(graph.state(), function.c_str(), input);
  for (const Tensor& output : outputs) {
    viewIn(graph.state(), function.c_str(), output);
    if (!output.isParallelWriteable())
      throw poplar_error("'" + name.getPathName() +
                         "' writes to a tensor with constants or with an element twice. Pass a tensor of variables.");
  }
  auto node = std::make_shared<Node>(
      Node{name.getPathName(), KernelStep{inputs, outputs, std::move(kernel), std::move(cost)}});
  program.add(program::Program(std::move(node)));
}

void addToComputeSet(Graph& graph, const ComputeSet& computeSet, const program::Program& program) {
  auto& compute_sets = graph.state().compute_sets;
  if (computeSet.isNull() || computeSet.getId() >= compute_sets.size())
    throw graph_object_creation_error("A library function was given a compute set that is not of this graph. Pass one of "
                                      "addComputeSet.");
  compute_sets[computeSet.getId()].programs.push_back(program);
}

}  // namespace detail

}  // namespace poplar
