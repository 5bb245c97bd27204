// Completes a node whose op or dtype was changed with the properties from which TensorFlow creates its kernel.
#pragma once

#include <memory>
#include <utility>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"

namespace tf_ipu_shim {

// Another op or dtype may have attributes that the node lacks: these get their defaults.
inline tensorflow::Status PropertiesOf(tensorflow::NodeDef node,
                                       std::shared_ptr<const tensorflow::NodeProperties>* properties) {
  const tensorflow::OpDef* op = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op));
  tensorflow::AddDefaultsToNodeDef(*op, &node);
  return tensorflow::NodeProperties::CreateFromNodeDef(std::move(node), tensorflow::OpRegistry::Global(), properties);
}

}  // namespace tf_ipu_shim
