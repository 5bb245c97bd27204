// `IpuUserOp` and `IpuStatelessUserOp`: an op that a user's library builds with the Poplar graph API. This is their
// kernel, of mode `kernels` and of eager execution. In XLA programs a custom call stands for them
// (`compiler/xla_semantics/user_ops`, `launches/program_calls`).
#include <cstring>
#include <string>
#include <vector>

#include "kernels/output_shapes.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "user_ops/poplar_bridge.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

// The op without state is one that may be left out where nothing needs its results.
#define REGISTER_USER_OP(NAME)                            \
  REGISTER_OP(NAME)                                       \
      .Input("input: input_types")                        \
      .Output("output: output_types")                     \
      .Attr("input_types: list(type) >= 0")               \
      .Attr("output_types: list(type) >= 0")              \
      .Attr("input_shapes: list(shape) >= 0 = []")        \
      .Attr("output_shapes: list(shape) >= 0")            \
      .Attr("library_path: string")                       \
      .Attr("library_digest: string = ''")                \
      .Attr("gp_path: string = ''")                       \
      .Attr("op_name: string = 'Build'")                  \
      .Attr("target: string = ''")                        \
      .Attr("debug_name: string = ''")                    \
      .Attr("is_hashable: bool = false")                  \
      .Attr("separate_gradients: bool = false")           \
      .Attr("gradient_size: int = 0")                     \
      .Attr("partial_derivative_index: int = 0")          \
      .Attr("inputs_with_gradients: list(int) >= 0 = []") \
      .Attr("attributes: string = ''")                    \
      .Attr("gradient_attributes: string = ''")           \
      .SetShapeFn(SetOutputShapesFromAttribute)

REGISTER_USER_OP("IpuUserOp").SetIsStateful();
REGISTER_USER_OP("IpuStatelessUserOp");

// A tensor in a call's description: its `DataType` and dimensions.
void AppendTensor(DataType type, const TensorShape& shape, std::string* text) {
  *text += strings::StrCat(text->empty() ? "" : ",", static_cast<int>(type), ":");
  for (int axis = 0; axis < shape.dims(); ++axis) *text += strings::StrCat(axis == 0 ? "" : "x", shape.dim_size(axis));
}

class UserOpKernel : public OpKernel {
 public:
  explicit UserOpKernel(OpKernelConstruction* context) : OpKernel(context) {
    std::vector<PartialTensorShape> shapes;
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &shapes));
    OP_REQUIRES(context, static_cast<int>(shapes.size()) == context->num_outputs(),
                errors::InvalidArgument(name(), " has ", context->num_outputs(), " outputs and ", shapes.size(),
                                        " shapes; expected one for each. Complete `outs`."));
    for (size_t i = 0; i < shapes.size(); ++i) {
      OP_REQUIRES(context, shapes[i].AsTensorShape(&shapes_.emplace_back()),
                  errors::InvalidArgument("Output ", i, " of ", name(), " has the shape ", shapes[i].DebugString(),
                                          "; expected every dimension. Give it in `outs`."));
      AppendTensor(context->output_type(static_cast<int>(i)), shapes_.back(), &outputs_);
    }
    int64_t gradient_size = 0;
    int64_t partial_derivative = 0;
    bool separate = false;
    std::string value;
    OP_REQUIRES_OK(context, context->GetAttr("gradient_size", &gradient_size));
    OP_REQUIRES_OK(context, context->GetAttr("partial_derivative_index", &partial_derivative));
    OP_REQUIRES_OK(context, context->GetAttr("separate_gradients", &separate));
    for (const char* attribute : {"library_path", "library_digest", "gp_path", "op_name", "target"}) {
      OP_REQUIRES_OK(context, context->GetAttr(attribute, &value));
      AppendField(value, &call_);
    }
    AppendField(std::to_string(gradient_size), &call_);
    AppendField(std::to_string(partial_derivative), &call_);
    AppendField(separate ? "1" : "0", &call_);
    OP_REQUIRES_OK(context, context->GetAttr(gradient_size > 0 ? "gradient_attributes" : "attributes", &value));
    AppendField(value, &call_);
    OP_REQUIRES_OK(context, context->GetAttr("debug_name", &value));
    AppendField(value.empty() ? name() : value, &call_);
  }

  void Compute(OpKernelContext* context) override {
    std::string types;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (int i = 0; i < context->num_inputs(); ++i) {
      const Tensor& input = context->input(i);
      AppendTensor(input.dtype(), input.shape(), &types);
      inputs.push_back(input.tensor_data().data());
    }
    for (int i = 0; i < context->num_outputs(); ++i) {
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, shapes_[i], &output));
      outputs.push_back(const_cast<char*>(output->tensor_data().data()));
    }
    std::string call = call_;
    AppendField(types, &call);
    AppendField(outputs_, &call);
    OP_REQUIRES_OK(context, RunUserOp(call, inputs, outputs));
  }

 private:
  std::string call_, outputs_;
  std::vector<TensorShape> shapes_;
};

REGISTER_KERNEL_BUILDER(Name("IpuUserOp").Device(DEVICE_CPU), UserOpKernel);
REGISTER_KERNEL_BUILDER(Name("IpuStatelessUserOp").Device(DEVICE_CPU), UserOpKernel);

}  // namespace
}  // namespace tf_ipu_shim
