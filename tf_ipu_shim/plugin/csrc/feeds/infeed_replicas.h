// The number of replicas that read elements of an infeed. They read in turn, so all programs of an infeed must have the
// same number of replicas.
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
