// Adds TensorFlow's convolutions and their gradients to a set of op names.
#pragma once

#include <set>
#include <string>
#include <utility>

namespace tf_ipu_shim {

// Returns these ops and the convolutions.
inline std::set<std::string> WithConvolutions(std::set<std::string> ops) {
  ops.insert({"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2",
              "Conv3DBackpropInputV2", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
              "DepthwiseConv2dNativeBackpropInput"});
  return ops;
}

}  // namespace tf_ipu_shim
