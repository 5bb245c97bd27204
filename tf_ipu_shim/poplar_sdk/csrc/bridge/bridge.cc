// The C functions: calls to C++ whose exceptions become status codes.
#include "bridge.h"

#include "built_op.hpp"
#include "description.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "user_library.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

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
    *error = strdup("a user's op threw an object that is no std::exception");
    return static_cast<int>(Code::Internal);
  }
}

std::string metadataOf(const OpCall& call) {
  const UserLibrary& library = UserLibrary::get(call);
  library.require(call);
  const Metadata found = library.metadata(call);
  JsonList allocating, aliases;
  for (const std::int64_t index : found.allocating_indices) allocating.add(std::to_string(index));
  for (const auto& [input, output] : found.aliases)
    aliases.add(JsonList({std::to_string(input), std::to_string(output)}).text());
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return "{\"api_level\":" + std::to_string(library.apiLevel()) + ",\"allocating_indices\":" + allocating.text() +
         ",\"aliases\":" + aliases.text() + ",\"is_elementwise\":" + flag(found.is_elementwise) +
         ",\"is_stateless\":" + flag(found.is_stateless) + ",\"is_hashable\":" + flag(found.is_hashable) + "}";
}

// Ops by their calls.
BuiltOp* builtOp(const std::string& bytes) {
  static auto* mutex = new std::mutex;
  static auto* ops = new std::map<std::string, std::unique_ptr<BuiltOp>>;
  std::lock_guard<std::mutex> lock(*mutex);
  const auto known = ops->find(bytes);
  if (known != ops->end()) return known->second.get();
  auto op = std::make_unique<BuiltOp>(OpCall::parse(bytes));
  return ops->emplace(bytes, std::move(op)).first->second.get();
}

}  // namespace
}  // namespace tf_ipu_shim

extern "C" {

using namespace tf_ipu_shim;

int tf_ipu_poplar_metadata(const char* call, std::size_t size, char** json, char** error) {
  return guarded(error, [&] { *json = strdup(metadataOf(OpCall::parse(std::string(call, size))).c_str()); });
}

int tf_ipu_poplar_build(const char* call, std::size_t size, void** op, char** error) {
  return guarded(error, [&] { *op = builtOp(std::string(call, size)); });
}

int tf_ipu_poplar_describe(void* op, char** json, char** error) {
  return guarded(error, [&] { *json = strdup(describe(*static_cast<BuiltOp*>(op)).c_str()); });
}

int tf_ipu_poplar_run(void* op, const void* const* inputs, void* const* outputs, char** error) {
  return guarded(error, [&] { static_cast<BuiltOp*>(op)->run(inputs, outputs); });
}

void tf_ipu_poplar_free(char* text) { std::free(text); }

}  // extern "C"
