// Selects oneDNN kernels for ops, as TensorFlow does on the CPU.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tf_ipu_shim {

// Replaces an op by the oneDNN op that TensorFlow's graph passes choose on the CPU; false if there is none. Those
// passes skip the IPU device. Only ops with the same inputs, outputs and attributes ("name change"); max-pooling, whose
// gradient has one more input, is in `compiler/kernels/one_dnn_pooling`.
bool UseOneDnnKernel(tensorflow::NodeDef* op);

// Whether such an op exists.
bool UsesOneDnnKernel(const tensorflow::NodeDef& node);

// The stock op of a oneDNN op: `MatMul` for `_MklMatMul`. Other names are returned unchanged.
std::string WithoutOneDnnPrefix(absl::string_view op);
tensorflow::NodeDef WithoutOneDnnPrefix(tensorflow::NodeDef node);

}  // namespace tf_ipu_shim
