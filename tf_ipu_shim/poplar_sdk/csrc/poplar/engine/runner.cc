// Runs compiled programs: allocates the memory of replicas, connects streams, and copies to and from the host.
#include "poplar/engine/runner.hpp"

#include <poplar/TypeConversion.hpp>
#include <poplar/detail/options.hpp>
#include <poplar/detail/random_state.hpp>

#include <cfenv>
#include <cstdlib>
#include <cstring>

namespace poplar::detail {

namespace {
constexpr std::size_t alignment = 64;
std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment + alignment; }

// While it lives, the thread computes with subnormal numbers, which TensorFlow's threads count as zero: float16 values
// below 2^-14 pass through them. Threads that are started meanwhile do, too.
class SubnormalNumbers {
 public:
  SubnormalNumbers() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~SubnormalNumbers() { std::fesetenv(&before_); }
  SubnormalNumbers(const SubnormalNumbers&) = delete;
  SubnormalNumbers& operator=(const SubnormalNumbers&) = delete;

 private:
  std::fenv_t before_;
};
}  // namespace

Runner::Runner(std::shared_ptr<const Compiled> compiled, const OptionFlags& options)
    : compiled_(std::move(compiled)), checks_(options), seed_(valueOf(options, "prng.seed", "")),
      replicas_(compiled_->graph->replicas) {
  const auto& variables = compiled_->graph->variables;
  std::size_t total = 0;
  for (const auto& variable : variables) total += padded(variable.count * typeSize(variable.type));
  for (auto& replica : replicas_) {
    replica.pages = std::make_unique<Pages>(total + alignment);
    char* at = replica.pages->data();
    for (const auto& variable : variables) {
      replica.memory.bases.push_back(at);
      at += padded(variable.count * typeSize(variable.type));
    }
    replica.compute_sets.resize(compiled_->compute_sets.size());
  }
  initialise();
}

void Runner::initialise() {
  const auto& graph = *compiled_->graph;
  for (std::uint32_t number = 0; number < replicas_.size(); ++number) {
    const Memory& memory = replicas_[number].memory;
    for (std::size_t i = 0; i < graph.variables.size(); ++i) {
      const Variable& variable = graph.variables[i];
      if (variable.constant) std::memcpy(memory.bases[i], variable.data.data(), variable.data.size());
      if (variable.replica_index) std::memcpy(memory.bases[i], &number, sizeof(number));
    }
    for (const auto& initial : graph.initial_values)
      if (const std::size_t count = initial.view.count())
        Moves(initial.view.spans(), initial.data.size() / count).scatter(initial.data.data(), memory);
  }
}

char* Runner::scratch(std::size_t slot, std::size_t bytes) {
  auto& buffer = scratch_[slot];
  if (buffer.size() < bytes + alignment) buffer.resize(bytes + alignment);
  const auto at = reinterpret_cast<std::uintptr_t>(buffer.data());
  return buffer.data() + (alignment - at % alignment) % alignment;
}

void Runner::seed() const {
  if (!seed_.empty()) RandomState::ofProcess().set(std::strtoull(seed_.c_str(), nullptr, 0));
}

void Runner::run(unsigned program) {
  if (program >= compiled_->programs.size())
    throw poplar_error("Engine::run: the program is " + std::to_string(program) + "; the engine has " +
                       std::to_string(compiled_->programs.size()) + " programs. Pass a lower number.");
  if (counts_runs) ++run_counts[program];
  const SubnormalNumbers scope;
  compiled_->programs[program]->run(*this);
}

bool Runner::execute(unsigned compute_set, Replica& replica) {
  auto& vertices = replica.compute_sets[compute_set];
  if (!vertices) {
    const auto number = static_cast<std::uint64_t>(&replica - replicas_.data());
    const std::uint64_t origin = number * compiled_->compute_sets.size() + compute_set;
    vertices = std::make_unique<Vertices>(*compiled_->compute_sets[compute_set], replica.memory, checks_, origin);
  }
  return vertices->run();
}

std::int64_t Runner::scalar(const Access& access, Type type) {
  std::optional<std::int64_t> result;
  for (auto& replica : replicas_) {
    std::int64_t value = 0;
    convertToHost(replica.memory.at(access.address, access.size), type, &value, TypeTraits::make<std::int64_t>(), 1);
    if (result && *result != value)
      throw application_runtime_error("A predicate or control value differs between replicas: " + std::to_string(*result) +
                                      " and " + std::to_string(value) +
                                      ". Reduce it over the replicas before the program branches.");
    result = value;
  }
  return *result;
}

namespace {
void checkBuffer(const char* function, const std::string& handle, const char* begin) {
  if (!begin)
    throw stream_connection_error(std::string(function) + ": the buffer for '" + handle + "' is a null pointer. Pass the " +
                                  "address of memory that lives until the engine has run.");
}
}  // namespace

void Runner::connect(const std::string& handle, char* begin, char* end, bool fixed) {
  const auto stream = compiled_->graph->streams.find(handle);
  if (stream == compiled_->graph->streams.end())
    throw stream_connection_error("connectStream: there is no stream '" + handle + "'. Use the handle of an added stream.");
  checkBuffer("connectStream", handle, begin);
  const std::size_t bytes = stream->second.numElements() * typeSize(stream->second.elementType());
  if (!fixed && (end <= begin || static_cast<std::size_t>(end - begin) % std::max<std::size_t>(1, bytes) != 0))
    throw stream_connection_error("connectStream: the buffer of stream '" + handle + "' has " +
                                  std::to_string(end - begin) + " bytes; expected a multiple of " +
                                  std::to_string(bytes) + ". Pass a buffer of whole transfers.");
  connections_[handle] = {begin, end, begin, fixed, {}};
}

void Runner::connect(const std::string& handle, unsigned replica, StreamCallbackHandle callback) {
  if (!compiled_->graph->streams.count(handle))
    throw stream_connection_error("connectStreamToCallback: there is no stream '" + handle +
                                  "'. Use the handle of an added stream.");
  if (replica >= replicas_.size())
    throw stream_connection_error("connectStreamToCallback: stream '" + handle + "' has no replica " +
                                  std::to_string(replica) + "; the graph has " + std::to_string(replicas_.size()) +
                                  ". Pass a lower number.");
  Connection& connection = connections_[handle];
  connection.begin = connection.end = connection.at = nullptr;
  connection.callbacks[replica] = std::make_shared<StreamCallbackHandle>(std::move(callback));
}

Connection& Runner::connectionOf(const DataStream& stream) {
  const auto found = connections_.find(stream.handle());
  if (found == connections_.end())
    throw stream_connection_error("Stream '" + stream.handle() +
                                  "' is not connected. Call Engine::connectStream before the program runs.");
  return found->second;
}

// The part of the host's buffer for the next transfer.
char* Runner::nextBuffer(Connection& connection, const DataStream&, std::size_t bytes) {
  if (connection.fixed) return connection.begin;
  if (connection.at + bytes > connection.end) connection.at = connection.begin;
  char* buffer = connection.at;
  connection.at += bytes;
  return buffer;
}

void Runner::toDevice(const DataStream& stream, const Access& access, std::size_t slot) {
  Connection& connection = connectionOf(stream);
  const bool once = stream.replicatedMode() == ReplicatedStreamMode::BROADCAST;
  char* buffer = nullptr;
  for (unsigned number = 0; number < replicas_.size(); ++number) {
    if (number > 0 && once) {
      access.moves.scatter(buffer, replicas_[number].memory);
      continue;
    }
    if (connection.begin) {
      buffer = nextBuffer(connection, stream, access.bytes());
    } else {
      const auto callback = connection.callbacks.find(once ? 0 : number);
      if (callback == connection.callbacks.end())
        throw stream_connection_error("Stream '" + stream.handle() + "' has no callback for replica " +
                                      std::to_string(number) + ". Connect one for each replica.");
      buffer = scratch(slot, access.bytes());
      (*callback->second)->fetch(buffer);
      (*callback->second)->complete();
    }
    access.moves.scatter(buffer, replicas_[number].memory);
  }
}

void Runner::fromDevice(const DataStream& stream, const Access& access, std::size_t slot) {
  Connection& connection = connectionOf(stream);
  for (unsigned number = 0; number < replicas_.size(); ++number) {
    if (connection.begin) {
      access.moves.gather(replicas_[number].memory, nextBuffer(connection, stream, access.bytes()));
      continue;
    }
    const auto callback = connection.callbacks.find(number);
    if (callback == connection.callbacks.end())
      throw stream_connection_error("Stream '" + stream.handle() + "' has no callback for replica " +
                                    std::to_string(number) + ". Connect one for each replica.");
    char* buffer = scratch(slot, access.bytes());
    access.moves.gather(replicas_[number].memory, buffer);
    (*callback->second)->fetch(buffer);
    (*callback->second)->complete();
  }
}

std::vector<char>& Runner::remoteBuffer(const std::string& handle, unsigned replica) {
  const auto found = compiled_->graph->remote_buffers.find(handle);
  if (found == compiled_->graph->remote_buffers.end())
    throw stream_connection_error("There is no remote buffer '" + handle + "'. Use the handle of addRemoteBuffer.");
  if (replica >= replicas_.size())
    throw stream_connection_error("Remote buffer '" + handle + "': replica " + std::to_string(replica) + " does not exist.");
  auto& data = remote_[{handle, replica}];
  data.resize(found->second.numElements() * found->second.getRepeats() * typeSize(found->second.elementType()));
  return data;
}

void Runner::connectHostFunction(const std::string& handle, unsigned replica, HostCallbackHandle callback) {
  bool known = false;
  for (const auto& function : compiled_->graph->host_functions) known |= function.handle == handle;
  if (!known || replica >= replicas_.size())
    throw stream_connection_error("connectHostFunction: there is no host function '" + handle + "' of replica " +
                                  std::to_string(replica) + ". Use a handle of addHostFunction and a replica's number.");
  host_functions_.insert_or_assign({handle, replica}, std::move(callback));
}

void Runner::callHost(const std::string& handle, unsigned replica, const KernelArguments& arguments) const {
  const auto found = host_functions_.find({handle, replica});
  if (found == host_functions_.end())
    throw stream_connection_error("Host function '" + handle + "' of replica " + std::to_string(replica) +
                                  " is not connected. Call Engine::connectHostFunction before the program runs.");
  found->second(arguments.inputs, arguments.outputs);
}

std::size_t Runner::checkedBytes(const char* function, const std::string& handle, const Tensor& tensor,
                                 const char* begin, const char* end) const {
  const std::size_t bytes = tensor.numElements() * typeSize(tensor.elementType());
  if (bytes > 0) checkBuffer(function, handle, begin);
  if (end && static_cast<std::size_t>(end - begin) != bytes * replicas_.size())
    throw poplar_error(std::string(function) + ": the buffer for '" + handle + "' has " + std::to_string(end - begin) +
                       " bytes; the tensor has " + std::to_string(bytes * replicas_.size()) +
                       ". Pass a buffer of that size.");
  return bytes;
}

namespace {
const Tensor& hostTensor(const char* function, const std::map<std::string, Tensor>& tensors, const std::string& handle) {
  const auto found = tensors.find(handle);
  if (found == tensors.end())
    throw stream_connection_error(std::string(function) + ": there is no handle '" + handle +
                                  "'. Create it on the graph before the engine is built.");
  return found->second;
}
}  // namespace

void Runner::write(const std::string& handle, const char* begin, const char* end) {
  const Tensor& tensor = hostTensor("writeTensor", compiled_->graph->host_writes, handle);
  const std::size_t bytes = checkedBytes("writeTensor", handle, tensor, begin, end);
  const Moves moves(viewOf(tensor).spans(), typeSize(tensor.elementType()));
  for (std::size_t number = 0; number < replicas_.size(); ++number)
    moves.scatter(begin + number * bytes, replicas_[number].memory);
}

void Runner::read(const std::string& handle, char* begin, char* end) {
  const Tensor& tensor = hostTensor("readTensor", compiled_->graph->host_reads, handle);
  const std::size_t bytes = checkedBytes("readTensor", handle, tensor, begin, end);
  const Moves moves(viewOf(tensor).spans(), typeSize(tensor.elementType()));
  for (std::size_t number = 0; number < replicas_.size(); ++number)
    moves.gather(replicas_[number].memory, begin + number * bytes);
}

}  // namespace poplar::detail
