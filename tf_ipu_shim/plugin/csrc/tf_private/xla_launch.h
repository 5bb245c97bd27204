// Declares the kernel that TensorFlow makes for jit-compiled calls on the CPU: the base class of `XlaLaunch`'s.
#pragma once

#include <cstddef>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {

// The declarations of tensorflow/compiler/jit/kernels/xla_ops.h, which includes MLIR headers that TensorFlow's wheels
// do not have. Checked on 2.15.1 (520 bytes) and 2.21.0 (448 bytes). The class has a key function, so its table of
// virtual functions is TensorFlow's own. `has_ref_vars` is its last argument in both. `check.cc` compares the sizes.
class XlaLocalLaunchBase : public AsyncOpKernel {
 public:
  XlaLocalLaunchBase(OpKernelConstruction* construction, const std::vector<int>& constants,
                     const std::vector<int>& resources, const NameAttrList& function, bool has_ref_vars);
  ~XlaLocalLaunchBase() override;
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override;

 private:
  alignas(std::max_align_t) char fields_[2048];  // more than they take
};

}  // namespace tensorflow
