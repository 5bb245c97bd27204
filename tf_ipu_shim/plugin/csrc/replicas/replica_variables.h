// Each replica's own copy of a program's variables. Replica 0 uses the script's variable; the others have hidden copies.
// They start with replica 0's value and keep their own values from run to run, until the host writes to the script's
// variable. A real device also uploads weights again when the host has changed them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "protocol/program_messages.h"
#include "programs/program_variables.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"

namespace tf_ipu_shim {

class ReplicaVariables {
 public:
  explicit ReplicaVariables(std::vector<ReplicaVariable> variables) : variables_(std::move(variables)) {}
  ~ReplicaVariables();
  ReplicaVariables(const ReplicaVariables&) = delete;
  ReplicaVariables& operator=(const ReplicaVariables&) = delete;

  // Creates missing copies before a run, and updates copies whose variable the host has changed.
  tensorflow::Status Upload(tensorflow::OpKernelContext* context, const IpuDevice& device);
  // Remembers the variables' values after a successful run, to detect later changes by the host.
  void Keep(tensorflow::OpKernelContext* context);

  size_t size() const { return variables_.size(); }
  int32_t input(size_t copy) const { return variables_[copy].argument; }
  // The handle of a copy, as an input of the program's kernel.
  tensorflow::TensorValue handle(size_t copy) { return tensorflow::TensorValue(&copies_[copy].handle); }

 private:
  struct Copy {
    tensorflow::Tensor handle;
    std::string name;
    tensorflow::core::RefCountPtr<tensorflow::Var> variable;
    // The script's variable as the last run left it. Holding it keeps the host from changing it in place.
    tensorflow::Tensor known;
    bool is_known = false;
  };

  tensorflow::Status Make(tensorflow::OpKernelContext* context, size_t copy);
  tensorflow::Status Fill(const IpuDevice& device, size_t copy, const tensorflow::Tensor& value,
                          tensorflow::Tensor* filled);

  const std::vector<ReplicaVariable> variables_;
  tensorflow::mutex mutex_;
  tensorflow::ResourceMgr* resources_ = nullptr;  // outlives the kernels of its device
  std::vector<Copy> copies_;
};

}  // namespace tf_ipu_shim
