// Calls the bridge (`libtf_ipu_poplar.so`), which builds and runs users' ops written with the Poplar graph API. The
// plugin does not link it: a process without such ops does not load Poplar's libraries.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_H_
#define TF_IPU_SHIM_POPLAR_BRIDGE_H_

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// Appends a field of a call's description (`poplar_sdk/csrc/bridge/op_call.hpp`).
void AppendField(const std::string& value, std::string* call);

// Keeps the built ops of a program, with which the fifth field of their calls begins, until its last lease is gone.
class UserOpsLease {
 public:
  UserOpsLease() = default;
  // An empty target has no ops.
  explicit UserOpsLease(std::string target);
  ~UserOpsLease();
  UserOpsLease(UserOpsLease&& other) noexcept : target_(std::exchange(other.target_, "")) {}
  UserOpsLease& operator=(UserOpsLease&& other) noexcept {
    std::swap(target_, other.target_);
    return *this;
  }

 private:
  std::string target_;
};

// Runs the op of this call, which is built first if no one has asked for it before. The memory of `outputs` is written
// whole. Of ops without a target, those of eager execution, the last ones that ran are kept.
tensorflow::Status RunUserOp(const std::string& call, const std::vector<const void*>& inputs,
                             const std::vector<void*>& outputs);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_H_
