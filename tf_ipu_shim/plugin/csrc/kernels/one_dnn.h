// Ops that run by oneDNN, as TensorFlow has them on the CPU.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tf_ipu_shim {

// Puts the oneDNN kernel in an op's place that TensorFlow's graph passes put there on the CPU; false where there is none.
// They pass over the IPU, as it is no CPU to them. Only kernels with the op's own inputs, outputs and attributes ("name
// change"); max-pooling, whose gradient takes a further input, is in `compiler/kernels/one_dnn_pooling`.
bool PutOnOneDnn(tensorflow::NodeDef* op);

// The op that such a kernel stands in for: `MatMul` of `_MklMatMul`. Others are what they are.
std::string WithoutOneDnn(absl::string_view op);
tensorflow::NodeDef WithoutOneDnn(tensorflow::NodeDef node);

}  // namespace tf_ipu_shim
