// Implements the C functions that build and run users' ops, and turns C++ exceptions into status codes.
#include "bridge.h"

#include "built_op.hpp"
#include "description.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "user_library.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tf_ipu_shim {
namespace {

int guarded(char** error, const std::function<void()>& call) {
  try {
    call();
    return 0;
  } catch (const Failure& failure) {
    *error = strdup(failure.what());
    return static_cast<int>(failure.code);
  } catch (const std::invalid_argument& failure) {
    *error = strdup(failure.what());
    return static_cast<int>(Code::InvalidArgument);
  } catch (const std::exception& failure) {
    *error = strdup((demangled(typeid(failure).name()) + ": " + failure.what()).c_str());
    return static_cast<int>(Code::Internal);
  } catch (...) {
    *error = strdup("a user's op threw an object that is not a std::exception");
    return static_cast<int>(Code::Internal);
  }
}

std::string metadataOf(const OpCall& call) {
  const UserLibrary& library = UserLibrary::get(call);
  library.require(call);
  const Metadata found = library.metadata(call);
  JsonList allocating, aliases, identical;
  for (const std::int64_t index : found.allocating_indices) allocating.add(std::to_string(index));
  for (const std::int64_t index : found.replica_identical_outputs) identical.add(std::to_string(index));
  for (const auto& [input, output] : found.aliases)
    aliases.add(JsonList({std::to_string(input), std::to_string(output)}).text());
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return "{\"api_level\":" + std::to_string(library.apiLevel()) + ",\"allocating_indices\":" + allocating.text() +
         ",\"aliases\":" + aliases.text() + ",\"replica_identical_outputs\":" + identical.text() +
         ",\"is_elementwise\":" + flag(found.is_elementwise) +
         ",\"is_stateless\":" + flag(found.is_stateless) + ",\"is_hashable\":" + flag(found.is_hashable) + "}";
}

using Handle = std::shared_ptr<BuiltOp>;

// Ops by their calls. It is never destroyed, as ops may still run when the process ends.
class BuiltOps {
 public:
  static BuiltOps& get() {
    static auto* ops = new BuiltOps;
    return *ops;
  }
  Handle find(const std::string& bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = ops_.find(bytes);
    if (known != ops_.end()) return known->second;
    OpCall call = OpCall::parse(bytes);
    // A function of another signature, or one that returns nothing, spoils what it was given: the crash comes later.
    const CrashText text(call.function() + " of " + call.library_path +
                         " crashed after it returned. It must return a poplar::program::Program and take the "
                         "arguments of its API level: check its signature.");
    const std::vector<const BuiltOp*> earlier = opsOfProgram(call.program());
    return ops_.emplace(bytes, std::make_shared<BuiltOp>(std::move(call), earlier)).first->second;
  }
  template <class Condition>
  void forget(Condition&& condition) {
    std::map<std::string, Handle> forgotten;  // is destroyed after the lock is released
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto op = ops_.begin(); op != ops_.end();) {
      const auto next = std::next(op);
      if (condition(*op)) forgotten.insert(ops_.extract(op));
      op = next;
    }
  }
  std::size_t count() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ops_.size();
  }

 private:
  // The ops that were built for a program. Each eager op, without a target, is its own program.
  std::vector<const BuiltOp*> opsOfProgram(const std::string& program) const {
    std::vector<const BuiltOp*> found;
    if (program.empty()) return found;
    for (const auto& [bytes, op] : ops_)
      if (op->call().program() == program) found.push_back(op.get());
    return found;
  }

  std::mutex mutex_;
  std::map<std::string, Handle> ops_;
};

BuiltOp& opOf(void* handle) { return **static_cast<Handle*>(handle); }

}  // namespace
}  // namespace tf_ipu_shim

extern "C" {

using namespace tf_ipu_shim;

int tf_ipu_poplar_metadata(const char* call, std::size_t size, char** json, char** error) {
  return guarded(error, [&] { *json = strdup(metadataOf(OpCall::parse(std::string(call, size))).c_str()); });
}

int tf_ipu_poplar_build(const char* call, std::size_t size, void** op, char** error) {
  return guarded(error, [&] { *op = new Handle(BuiltOps::get().find(std::string(call, size))); });
}

int tf_ipu_poplar_locate(const char* call, std::size_t size, const char* op, char** error) {
  return guarded(error, [&] { BuiltOps::get().find(std::string(call, size))->locate(op); });
}

void tf_ipu_poplar_release(void* op) { delete static_cast<Handle*>(op); }

void tf_ipu_poplar_forget(const char* call, std::size_t size) {
  const std::string bytes(call, size);
  BuiltOps::get().forget([&](const auto& op) { return op.first == bytes; });
}

void tf_ipu_poplar_forget_target(const char* target) {
  BuiltOps::get().forget([&](const auto& op) { return op.second->call().program() == target; });
}

std::size_t tf_ipu_poplar_count() { return BuiltOps::get().count(); }

int tf_ipu_poplar_describe(void* op, char** json, char** error) {
  return guarded(error, [&] { *json = strdup(describe(opOf(op)).c_str()); });
}

int tf_ipu_poplar_run(void* op, const void* const* inputs, void* const* outputs, char** error) {
  return guarded(error, [&] { opOf(op).run(inputs, outputs); });
}

void tf_ipu_poplar_free(char* text) { std::free(text); }

}  // extern "C"
