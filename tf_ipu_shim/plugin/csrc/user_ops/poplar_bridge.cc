// Loads the bridge and looks built ops up by their calls.
#include "user_ops/poplar_bridge.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using tensorflow::Status;

// The C functions of `poplar_sdk/csrc/bridge/bridge.h`. Each returns a status code, and for a failure a text to free.
struct Bridge {
  int (*build)(const char* call, size_t size, void** op, char** error) = nullptr;
  void (*release)(void* op) = nullptr;
  void (*forget)(const char* call, size_t size) = nullptr;
  void (*forget_target)(const char* target) = nullptr;
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
struct BuiltOp {
  std::shared_ptr<void> op;  // a run has a share of it
  int64_t last_run = 0;
};
using BuiltOps = std::unordered_map<std::string, BuiltOp>;  // by call
auto* built_ops = new std::unordered_map<std::string, BuiltOps>;  // by program
auto* leases = new std::unordered_map<std::string, int>;          // by target
int64_t runs = 0;
constexpr size_t kept_eager_ops = 128;

template <class Function>
bool FindFunction(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// Requires the mutex.
Status LoadBridge() {
  if (loaded_bridge != nullptr) return tensorflow::OkStatus();
  if (bridge_path->empty()) {
    return tensorflow::errors::FailedPrecondition(
        "A user's Poplar op cannot run: Poplar's libraries are not loaded in this process. A graph that was loaded from "
        "a file does not load them. Call `from tf_ipu_shim.poplar_sdk import bridge; bridge.load()` first.");
  }
  void* const handle = dlopen(bridge_path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return tensorflow::errors::Internal("Poplar's libraries cannot be loaded: ", dlerror());
  auto bridge = std::make_unique<Bridge>();
  if (!FindFunction(handle, "tf_ipu_poplar_build", &bridge->build) ||
      !FindFunction(handle, "tf_ipu_poplar_release", &bridge->release) ||
      !FindFunction(handle, "tf_ipu_poplar_forget", &bridge->forget) ||
      !FindFunction(handle, "tf_ipu_poplar_forget_target", &bridge->forget_target) ||
      !FindFunction(handle, "tf_ipu_poplar_run", &bridge->run) ||
      !FindFunction(handle, "tf_ipu_poplar_free", &bridge->free)) {
    return tensorflow::errors::Internal(*bridge_path, " is not the library that runs Poplar ops. Run `tf-ipu build`.");
  }
  loaded_bridge = bridge.release();
  return tensorflow::OkStatus();
}

// A field of a call's description; each is behind its length and a colon.
std::string FieldOf(const std::string& call, int index) {
  size_t begin = 0;
  while (true) {
    const size_t colon = call.find(':', begin);
    if (colon == std::string::npos) return "";
    const size_t size = std::stoul(call.substr(begin, colon - begin));
    if (index-- == 0) return call.substr(colon + 1, size);
    begin = colon + 1 + size;
  }
}

// Returns the program that a target names: all of it but the last word, a number of IPUs.
std::string ProgramOf(const std::string& target) { return target.substr(0, target.rfind(' ')); }

// Requires the mutex.
void Forget(BuiltOps* ops, BuiltOps::iterator op) {
  loaded_bridge->forget(op->first.data(), op->first.size());
  ops->erase(op);
}

// Requires the mutex. Drops the eager op that ran longest ago.
void MakeRoom(BuiltOps* ops) {
  if (ops->size() <= kept_eager_ops) return;
  Forget(ops, std::min_element(ops->begin(), ops->end(), [](const auto& a, const auto& b) {
           return a.second.last_run < b.second.last_run;
         }));
}

Status FindOp(const std::string& call, std::shared_ptr<void>* op) {
  std::lock_guard<std::mutex> lock(bridge_mutex);
  TF_RETURN_IF_ERROR(LoadBridge());
  const std::string program = ProgramOf(FieldOf(call, 4));
  BuiltOps& ops = (*built_ops)[program];
  BuiltOp& known = ops[call];
  known.last_run = ++runs;
  if (known.op == nullptr) {
    void* built = nullptr;
    char* error = nullptr;
    const int code = loaded_bridge->build(call.data(), call.size(), &built, &error);
    if (code != 0) {
      ops.erase(call);
      return loaded_bridge->FromCode(code, error);
    }
    known.op = std::shared_ptr<void>(built, loaded_bridge->release);
  }
  *op = known.op;
  if (program.empty()) MakeRoom(&ops);
  return tensorflow::OkStatus();
}

}  // namespace

void AppendField(const std::string& value, std::string* call) {
  *call += std::to_string(value.size()) + ":" + value;
}

Status RunUserOp(const std::string& call, const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  std::shared_ptr<void> op;
  TF_RETURN_IF_ERROR(FindOp(call, &op));
  char* error = nullptr;
  const int code = loaded_bridge->run(op.get(), inputs.data(), outputs.data(), &error);
  return loaded_bridge->FromCode(code, error);
}

UserOpsLease::UserOpsLease(std::string target) : target_(std::move(target)) {
  if (target_.empty()) return;
  std::lock_guard<std::mutex> lock(bridge_mutex);
  ++(*leases)[target_];
}

UserOpsLease::~UserOpsLease() {
  if (target_.empty()) return;
  std::lock_guard<std::mutex> lock(bridge_mutex);
  if (--(*leases)[target_] > 0) return;
  leases->erase(target_);
  if (!LoadBridge().ok()) return;
  loaded_bridge->forget_target(target_.c_str());
  built_ops->erase(target_);
}

}  // namespace tf_ipu_shim

extern "C" {

// Says where the bridge is.
void ipu_set_poplar_bridge(const char* bridge) {
  std::lock_guard<std::mutex> lock(tf_ipu_shim::bridge_mutex);
  *tf_ipu_shim::bridge_path = bridge;
}

}  // extern "C"
