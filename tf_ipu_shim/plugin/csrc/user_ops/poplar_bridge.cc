// Loads the bridge and looks built ops up by their calls.
#include "user_ops/poplar_bridge.h"

#include <dlfcn.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using tensorflow::Status;

// The C functions of `poplar/csrc/bridge/bridge.h`. Each returns a status code, and for a failure a text to free.
struct Bridge {
  int (*build)(const char* call, size_t size, void** op, char** error) = nullptr;
  int (*run)(void* op, const void* const* inputs, void* const* outputs, char** error) = nullptr;
  void (*free)(char* text) = nullptr;

  Status FromCode(int code, char* text) const {
    if (code == 0) return tensorflow::OkStatus();
    const std::string message = text == nullptr ? "" : text;
    free(text);
    return Status(static_cast<absl::StatusCode>(code), message);
  }
};

std::mutex bridge_mutex;
std::string* bridge_path = new std::string;  // these are never destroyed: launches may still run when the process ends
Bridge* loaded_bridge = nullptr;
auto* built_ops = new std::unordered_map<std::string, void*>;

template <class Function>
bool FindFunction(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// With the mutex held.
Status LoadBridge() {
  if (loaded_bridge != nullptr) return tensorflow::OkStatus();
  if (bridge_path->empty()) {
    return tensorflow::errors::FailedPrecondition(
        "A user's Poplar op cannot run: Poplar's libraries are not loaded in this process. Call "
        "tf_ipu_shim.poplar_sdk.bridge.load() first.");
  }
  void* const handle = dlopen(bridge_path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return tensorflow::errors::Internal("Poplar's libraries cannot be loaded: ", dlerror());
  auto bridge = std::make_unique<Bridge>();
  if (!FindFunction(handle, "tf_ipu_poplar_build", &bridge->build) ||
      !FindFunction(handle, "tf_ipu_poplar_run", &bridge->run) ||
      !FindFunction(handle, "tf_ipu_poplar_free", &bridge->free)) {
    return tensorflow::errors::Internal(*bridge_path, " is not the library that runs Poplar ops. Run `tf-ipu build`.");
  }
  loaded_bridge = bridge.release();
  return tensorflow::OkStatus();
}

Status FindOp(const std::string& call, void** op) {
  std::lock_guard<std::mutex> lock(bridge_mutex);
  TF_RETURN_IF_ERROR(LoadBridge());
  const auto known = built_ops->find(call);
  if (known != built_ops->end()) {
    *op = known->second;
    return tensorflow::OkStatus();
  }
  char* error = nullptr;
  const int code = loaded_bridge->build(call.data(), call.size(), op, &error);
  TF_RETURN_IF_ERROR(loaded_bridge->FromCode(code, error));
  built_ops->emplace(call, *op);
  return tensorflow::OkStatus();
}

}  // namespace

void AppendField(const std::string& value, std::string* call) {
  *call += std::to_string(value.size()) + ":" + value;
}

Status RunUserOp(const std::string& call, const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  void* op = nullptr;
  TF_RETURN_IF_ERROR(FindOp(call, &op));
  char* error = nullptr;
  const int code = loaded_bridge->run(op, inputs.data(), outputs.data(), &error);
  return loaded_bridge->FromCode(code, error);
}

}  // namespace tf_ipu_shim

extern "C" {

// Says where the bridge is.
void ipu_set_poplar_bridge(const char* bridge) {
  std::lock_guard<std::mutex> lock(tf_ipu_shim::bridge_mutex);
  *tf_ipu_shim::bridge_path = bridge;
}

}  // extern "C"
