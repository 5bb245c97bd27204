// Loads users' libraries and calls their functions by the signatures of their API level.
#include "user_library.hpp"

#include "failure.hpp"
#include "loading.hpp"
#include "signature_check.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace tf_ipu_shim {
namespace {

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Program;
using Tensors = std::vector<Tensor>;
using Indices = std::vector<std::int64_t>;
using Aliases = std::map<std::int64_t, std::int64_t>;
using Text = const std::string&;

constexpr int oldest_api_level = 1, newest_api_level = 5;

// The signatures, by the level from which they hold: attributes came with level 2, aliases with 3, is_hashable with 4,
// replica-identical outputs with 5.
using Build1 = Program(Graph&, const Tensors&, Tensors&, Text);
using Build2 = Program(Graph&, const Tensors&, Tensors&, Text, Text);
using Gradient1 = Program(Graph&, int, const Tensors&, const Tensors&, const Tensors&, Tensors&, Text);
using Gradient2 = Program(Graph&, int, const Tensors&, const Tensors&, const Tensors&, Tensors&, Text, Text);
using Allocator1 = Tensor(Graph&, std::uint32_t, const std::vector<std::size_t>&, poplar::Type, Text);
using Allocator2 = Tensor(Graph&, std::uint32_t, const std::vector<std::size_t>&, poplar::Type, Text, Text);
using Metadata1 = void(Indices&, std::uint32_t&, bool&, bool&, std::uint32_t);
using Metadata3 = void(Indices&, Aliases&, bool&, bool&, std::uint32_t);
using Metadata4 = void(Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t);
using Metadata5 = void(Indices&, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t);

template <class Signature>
Signature* as(void* function) {
  return reinterpret_cast<Signature*>(function);
}

void callMetadata(void* function, int level, std::uint32_t inputs, MetadataArguments& arguments) {
  auto& [allocating, identical, aliases, in_place, elementwise, stateless, hashable] = arguments;
  if (level >= 5) {
    as<Metadata5>(function)(allocating.value, identical.value, aliases.value, elementwise.value, stateless.value,
                            hashable.value, inputs);
  } else if (level == 4) {
    as<Metadata4>(function)(allocating.value, aliases.value, elementwise.value, stateless.value, hashable.value, inputs);
  } else if (level == 3) {
    as<Metadata3>(function)(allocating.value, aliases.value, elementwise.value, stateless.value, inputs);
  } else {
    as<Metadata1>(function)(allocating.value, in_place.value, elementwise.value, stateless.value, inputs);
  }
}

std::string metadataParameters(int level) {
  const std::string indices = "std::vector<std::int64_t>&";
  std::string text = indices;
  if (level >= 5) text += ", " + indices;
  text += level >= 3 ? ", std::map<std::int64_t, std::int64_t>&" : ", std::uint32_t&";
  for (int flags = level >= 4 ? 3 : 2; flags > 0; --flags) text += ", bool&";
  return text + ", std::uint32_t";
}

// Throws a Failure if the metadata names an input or output that the op does not have.
void checkIndices(const std::string& what, const MetadataArguments& arguments, const OpCall& call) {
  const auto check = [&](const char* role, std::int64_t index, std::size_t count, const std::string& claim,
                         const char* rest) {
    if (index >= 0 && static_cast<std::size_t>(index) < count) return;
    throw Failure(Code::Internal, what + " " + claim + " " + role + " " + std::to_string(index) + rest + "; the op has " +
                                      std::to_string(count) + " " + role + "s. Pass an index from 0 to " +
                                      std::to_string(std::max<std::size_t>(count, 1) - 1) + ", or none.");
  };
  const std::size_t inputs = call.inputs.size(), outputs = call.outputs.size();
  for (const std::int64_t index : arguments.allocating_indices.value) check("input", index, inputs, "allocates", "");
  for (const auto& [input, output] : arguments.aliases.value) {
    check("input", input, inputs, "gives", " the memory of an output");
    check("output", output, outputs, "gives", " the memory of an input");
  }
  for (const std::int64_t index : arguments.replica_identical_outputs.value)
    check("output", index, outputs, "says that", " is equal on all replicas");
}

// Users' functions are called by one thread at a time: their libraries need not be made for several.
std::recursive_mutex& userCode() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

}  // namespace

const UserLibrary& UserLibrary::get(const OpCall& call) {
  static auto* libraries = new std::map<std::pair<std::string, std::string>, std::unique_ptr<UserLibrary>>;
  static auto* paths = new std::set<std::string>;
  std::lock_guard<std::recursive_mutex> lock(userCode());
  std::unique_ptr<UserLibrary>& known = (*libraries)[{call.library_path, call.library_digest}];
  if (known == nullptr) {
    std::unique_ptr<UserLibrary> library(new UserLibrary(call.library_path));
    library->load(paths->count(call.library_path) > 0);
    library->checkHeaders();
    library->checkApiLevel();
    paths->insert(call.library_path);
    known = std::move(library);
  }
  return *known;
}

void UserLibrary::load(bool changed) { handle_ = loadLibrary(path_, changed); }

void UserLibrary::checkHeaders() const {
  void* const version = findIn(handle_, "tf_ipu_shim_poplar_headers");
  const std::string rebuild = ". Compile it again in a shell with the output of `tf-ipu poplar --shell`.";
  if (version == nullptr)
    throw Failure(Code::Internal, path_ + " was compiled with other Poplar headers; expected tf_ipu_shim's" + rebuild);
  const int built = *static_cast<const int*>(version);
  if (built != tf_ipu_shim_poplar_headers)
    throw Failure(Code::Internal, path_ + " was compiled with version " + std::to_string(built) +
                                      " of tf_ipu_shim's Poplar headers; expected version " +
                                      std::to_string(tf_ipu_shim_poplar_headers) + rebuild);
}

void UserLibrary::checkApiLevel() {
  void* const level = findIn(handle_, "custom_op_api_level");
  const std::string range = std::to_string(oldest_api_level) + " to " + std::to_string(newest_api_level);
  if (level == nullptr)
    throw Failure(Code::Internal, path_ + " does not say its API level; expected " + range +
                                      ". Add to its source: extern \"C\" { int32_t custom_op_api_level = 5; }");
  api_level_ = *static_cast<const std::int32_t*>(level);
  if (api_level_ < oldest_api_level || api_level_ > newest_api_level)
    throw Failure(Code::Internal, "The API level of " + path_ + " is " + std::to_string(api_level_) + "; expected " +
                                      range + ". Set custom_op_api_level in its source and compile it again.");
}

void* UserLibrary::find(const std::string& function) const { return findIn(handle_, function); }

std::string UserLibrary::what(const std::string& function) const { return function + " of " + path_; }

void UserLibrary::require(const OpCall& call) const {
  if (find(call.function()) != nullptr) return;
  throw Failure(Code::NotFound, path_ + " has no function " + call.function() +
                                    "; expected one that is declared extern \"C\". Add it, or change op_name" +
                                    (call.gradient_size > 0 ? " or inputs_with_gradients." : "."));
}

Metadata UserLibrary::metadata(const OpCall& call) const {
  const std::string name = call.function() + "_metadata";
  void* const function = find(name);
  if (function == nullptr) return {};
  const auto inputs = static_cast<std::uint32_t>(call.inputs.size());
  const auto set = [&](MetadataArguments& arguments) { callMetadata(function, api_level_, inputs, arguments); };
  std::lock_guard<std::recursive_mutex> lock(userCode());
  if (checked_.count({name, inputs}) == 0) checkSignature(what(name), metadataParameters(api_level_), set);
  checked_.emplace(name, inputs);
  MetadataArguments arguments;
  callUser(what(name), [&] { set(arguments); });
  if (arguments.in_place.value > inputs)
    throw Failure(Code::Internal, what(name) + " says that " + std::to_string(arguments.in_place.value) +
                                      " inputs are outputs; expected at most " + std::to_string(inputs) +
                                      ". Change the function.");
  checkIndices(what(name), arguments, call);
  // Levels 1 and 2 count how many of the first inputs are outputs, too.
  for (std::uint32_t index = 0; index < arguments.in_place.value; ++index) arguments.aliases.value.emplace(index, index);
  return {arguments.allocating_indices.value, arguments.replica_identical_outputs.value, arguments.aliases.value,
          arguments.is_elementwise.value,     arguments.is_stateless.value,              arguments.is_hashable.value};
}

Tensor UserLibrary::allocate(const OpCall& call, Graph& graph, unsigned operand) const {
  Tensor tensor;
  void* const function = find(call.function() + "_allocator");
  if (function == nullptr) return tensor;
  const TensorType& type = call.inputs[operand];
  std::lock_guard<std::recursive_mutex> lock(userCode());
  callUser(what(call.function() + "_allocator"), [&] {
    tensor = api_level_ >= 2
                 ? as<Allocator2>(function)(graph, operand, type.shape, type.type, call.attributes, call.name)
                 : as<Allocator1>(function)(graph, operand, type.shape, type.type, call.name);
  });
  return tensor;
}

Program UserLibrary::build(const OpCall& call, Graph& graph, const Tensors& inputs, Tensors& outputs) const {
  void* const function = find(call.function());
  Program program;
  std::lock_guard<std::recursive_mutex> lock(userCode());
  callUser(what(call.function()), [&] {
    if (call.gradient_size == 0) {
      program = api_level_ >= 2 ? as<Build2>(function)(graph, inputs, outputs, call.attributes, call.name)
                                : as<Build1>(function)(graph, inputs, outputs, call.name);
      return;
    }
    const auto count = static_cast<std::ptrdiff_t>(call.gradient_size);
    const Tensors gradients(inputs.begin(), inputs.begin() + count);
    const Tensors forward_inputs(inputs.begin() + count, inputs.end() - count);
    const Tensors forward_outputs(inputs.end() - count, inputs.end());
    program = api_level_ >= 2 ? as<Gradient2>(function)(graph, call.partial_derivative, gradients, forward_inputs,
                                                        forward_outputs, outputs, call.attributes, call.name)
                              : as<Gradient1>(function)(graph, call.partial_derivative, gradients, forward_inputs,
                                                        forward_outputs, outputs, call.name);
  });
  return program;
}

}  // namespace tf_ipu_shim
