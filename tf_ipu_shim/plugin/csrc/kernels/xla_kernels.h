// Tells which ops XLA can compile.
#pragma once

#include "tensorflow/core/framework/node_def.pb.h"

namespace tf_ipu_shim {

bool XlaHasKernel(const tensorflow::NodeDef& node);

}  // namespace tf_ipu_shim
