// Iterates over the operand elements of each result element of a broadcasting binary op.
#pragma once

#include <cstdint>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/util/bcast.h"

namespace tf_ipu_shim {

// Calls a function for each result element with its index and the indices in the operands. Skips shapes that do not
// broadcast: the kernel reports those.
template <typename Function>
void ForEachBroadcastPair(const tensorflow::TensorShape& x, const tensorflow::TensorShape& y,
                          const Function& function) {
  using tensorflow::BCast;
  const BCast broadcast(BCast::FromShape(x), BCast::FromShape(y), /*fewer_dims_optimization=*/true);
  if (!broadcast.IsValid()) return;
  const BCast::Vec& shape = broadcast.result_shape();
  const int rank = static_cast<int>(shape.size());
  // In an operand's memory, how far apart neighbours along each axis are: 0 along those it is repeated along.
  const auto strides_of = [&](const BCast::Vec& own) {
    BCast::Vec strides(rank, 0);
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (own[axis] != 1) strides[axis] = stride;
      stride *= own[axis];
    }
    return strides;
  };
  const BCast::Vec x_strides = strides_of(broadcast.x_reshape()), y_strides = strides_of(broadcast.y_reshape());
  int64_t total = 1;
  for (const int64_t size : shape) total *= size;
  BCast::Vec at(rank, 0);
  int64_t x_index = 0, y_index = 0;
  for (int64_t i = 0; i < total; ++i) {
    function(i, x_index, y_index);
    for (int axis = rank - 1; axis >= 0; --axis) {
      x_index += x_strides[axis];
      y_index += y_strides[axis];
      if (++at[axis] < shape[axis]) break;
      x_index -= x_strides[axis] * shape[axis];
      y_index -= y_strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace tf_ipu_shim
