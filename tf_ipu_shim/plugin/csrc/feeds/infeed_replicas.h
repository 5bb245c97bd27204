// Checks that all programs that read an infeed have the same number of replicas. Replicas read its elements in turn, so
// another number of replicas would distribute them differently.
#pragma once

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace tf_ipu_shim {

// FailedPrecondition if a program of this configuration with another number of replicas has taken elements since the
// infeed was started. Ops that are not on an IPU are not looked at.
tensorflow::Status CheckInfeedReplicas(tensorflow::OpKernelContext* context, tensorflow::ResourceMgr* resources,
                                       const std::string& infeed, int64_t replicas);

// Forgets the number of replicas; called when the infeed is started or deleted.
void ForgetInfeedReplicas(tensorflow::ResourceMgr* resources, const std::string& infeed);

}  // namespace tf_ipu_shim
