// Runs a float32 kernel on float16 operands and variables, and converts its results back.
#include "floats/float16_via_float32.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "floats/float16_conversion.h"
#include "floats/random_seed.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_var.h"
#include "floats/updated_variables.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file stands between TensorFlow's kernels

template <typename From, typename To>
void ConvertFlat(const Tensor& from, Tensor* to) {
  to->flat<To>() = from.flat<From>().template cast<To>();
}

void Widen(const Tensor& narrow, Tensor* wide) {
  if (narrow.dtype() == DT_HALF) {
    Float16ToFloat32(static_cast<const uint16_t*>(narrow.data()), narrow.NumElements(), wide->flat<float>().data());
  } else {
    ConvertFlat<bfloat16, float>(narrow, wide);
  }
}

// The destinations of one run's results: each is rounded with its own seed, drawn for the first result.
class Narrowing {
 public:
  Narrowing(OpKernelContext* context, const OpRounding& rounding) : context_(context), rounding_(rounding) {}

  void To(const Tensor& wide, Tensor* narrow) {
    if (narrow->dtype() == DT_BFLOAT16) return ConvertFlat<float, bfloat16>(wide, narrow);
    if (!rounding_.IsStochastic()) {
      const float* const values = static_cast<const float*>(wide.data());
      return Float32ToFloat16(values, wide.NumElements(), static_cast<uint16_t*>(narrow->data()));
    }
    if (results_++ == 0) seed_ = rounding_.Draw(context_);
    RoundStochastically(wide, Mix(seed_ + results_), narrow);
  }

 private:
  OpKernelContext* const context_;
  const OpRounding& rounding_;
  uint64_t seed_ = 0, results_ = 0;
};

// The variables of float16 that an op updates, locked for as long as this lives, and copies of them of float32.
class WideVariables {
 public:
  // `inputs` are the op's inputs, with handles of copies in place of variables' handles.
  Status Make(OpKernelContext* context, std::vector<TensorValue>* inputs) {
    if (!UpdatesVariables(context->op_kernel().def().op())) return OkStatus();
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (context->input_dtype(i) != DT_RESOURCE) continue;
      core::RefCountPtr<Var> variable;
      TF_RETURN_IF_ERROR(LookupResource(context, HandleFromInput(context, i), &variable));
      if (variable->tensor()->dtype() == DT_HALF) made_.push_back({i, std::move(variable)});
    }
    Lock();
    handles_.reserve(made_.size());
    for (Copy& copy : made_) {
      if (!copy.variable->is_initialized) continue;  // the kernel says so, of the variable itself
      const Tensor& narrow = *copy.variable->tensor();
      copy.wide = new Var(DT_FLOAT);  // the handle takes it
      handles_.emplace_back(DT_RESOURCE, TensorShape({}));
      handles_.back().scalar<ResourceHandle>()() =
          ResourceHandle::MakeRefCountingHandle(copy.wide, context->device()->attributes().name());
      TF_RETURN_IF_ERROR(context->allocate_temp(DT_FLOAT, narrow.shape(), copy.wide->tensor()));
      Widen(narrow, copy.wide->tensor());
      copy.wide->is_initialized = true;
      (*inputs)[copy.input] = TensorValue(&handles_.back());
    }
    return OkStatus();
  }

  Status Update(OpKernelContext* context, Narrowing* narrowing) {
    for (Copy& copy : made_) {
      if (copy.wide == nullptr) continue;
      Tensor narrow;
      const Tensor& wide = *copy.wide->tensor();
      TF_RETURN_IF_ERROR(context->allocate_temp(DT_HALF, wide.shape(), &narrow));
      narrowing->To(wide, &narrow);
      *copy.variable->tensor() = narrow;
    }
    return OkStatus();
  }

 private:
  struct Copy {
    int input;
    core::RefCountPtr<Var> variable;
    Var* wide = nullptr;
  };

  // In one order, as other ops may update the same variables.
  void Lock() {
    std::vector<mutex*> all;
    for (const Copy& copy : made_) all.push_back(copy.variable->mu());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (mutex* const one : all) locks_.push_back(std::make_unique<mutex_lock>(*one));
  }

  std::vector<Copy> made_;
  std::vector<Tensor> handles_;
  std::vector<std::unique_ptr<mutex_lock>> locks_;  // let go before the variables are
};

}  // namespace

NodeDef WithFloat32Attributes(NodeDef node) {
  for (auto& attribute : *node.mutable_attr()) {
    if (Is16BitFloatType(attribute.second.type())) attribute.second.set_type(DT_FLOAT);
    if (!attribute.second.has_list()) continue;
    auto* const list = attribute.second.mutable_list();
    for (int i = 0; i < list->type_size(); ++i) {
      if (Is16BitFloatType(list->type(i))) list->set_type(i, DT_FLOAT);
    }
  }
  return node;
}

void ComputeInFloat32(OpKernelContext* context, OpKernel* float32_kernel, const OpRounding& rounding) {
  std::vector<Tensor> wide(context->num_inputs());
  std::vector<TensorValue> inputs;
  for (int i = 0; i < context->num_inputs(); ++i) {
    inputs.push_back(context->params()->inputs[i]);
    if (!Is16BitFloatType(context->input_dtype(i)) || float32_kernel->input_type(i) != DT_FLOAT) continue;
    const Tensor& narrow = context->input(i);
    OP_REQUIRES_OK(context, context->allocate_temp(DT_FLOAT, narrow.shape(), &wide[i]));
    Widen(narrow, &wide[i]);
    inputs.back() = TensorValue(&wide[i]);
  }
  WideVariables variables;
  OP_REQUIRES_OK(context, variables.Make(context, &inputs));
  OpKernelContext::Params params = *context->params();
  params.eigen_gpu_device = nullptr;  // which the other one deletes
  params.op_kernel = float32_kernel;
  params.inputs = inputs;
  params.forward_from_array = nullptr;  // of this op's buffers
  OpKernelContext inner(&params, context->num_outputs());
  float32_kernel->Compute(&inner);
  OP_REQUIRES_OK(context, inner.status());
  Narrowing narrowing(context, rounding);
  for (int i = 0; i < context->num_outputs(); ++i) {
    const Tensor* const found = inner.mutable_output(i);
    if (found == nullptr) continue;
    if (found->dtype() == context->expected_output_dtype(i)) {
      context->set_output(i, *found);
      continue;
    }
    Tensor* narrow = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(i, found->shape(), &narrow));
    narrowing.To(*found, narrow);
  }
  OP_REQUIRES_OK(context, variables.Update(context, &narrowing));
}

}  // namespace tf_ipu_shim
