// `IpuApplicationCompile`: writes a traced function, with the values of frozen arguments, to an application file when
// it runs. Returns the file's path.
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "programs/lowering_call.h"
#include "programs/program_request.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuApplicationCompile")
    .Input("args: Tin")
    .Output("file: string")
    .Attr("Tin: list(type) >= 0")
    .Attr("function: string")
    .Attr("library: string")
    .Attr("output_shapes: list(shape) >= 0 = []")
    // Empty for a new file in the directory for temporary files.
    .Attr("path: string = ''")
    // For each argument its name, and whether its value becomes part of the file.
    .Attr("names: list(string) >= 0 = []")
    .Attr("frozen: list(bool) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape);

class ApplicationCompileOp : public OpKernel {
 public:
  explicit ApplicationCompileOp(OpKernelConstruction* context) : OpKernel(context) {
    string library;
    OP_REQUIRES_OK(context, context->GetAttr("function", &function_));
    OP_REQUIRES_OK(context, context->GetAttr("library", &library));
    OP_REQUIRES(context, library_.ParseFromString(library),
                errors::InvalidArgument("IpuApplicationCompile ", name(), " holds no readable function library"));
    OP_REQUIRES_OK(context, context->GetAttr("path", &path_));
    OP_REQUIRES_OK(context, context->GetAttr("names", &names_));
    OP_REQUIRES_OK(context, context->GetAttr("frozen", &frozen_));
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &output_shapes_));
    const size_t arguments = context->num_inputs();
    OP_REQUIRES(context, names_.size() == arguments && frozen_.size() == arguments,
                errors::InvalidArgument(name(), " names ", names_.size(), " of its ", arguments, " arguments"));
  }

  void Compute(OpKernelContext* context) override {
    const IpuDevice* device = AsIpuDevice(context->function_library()->device());
    ProgramRequest request;
    OP_REQUIRES_OK(context,
                   MakeRequest(context, device == nullptr ? 0 : device->ordinal(), function_, library_, &request));
    ApplicationMessage& application = request.application.emplace();
    application.path = path_;
    for (const PartialTensorShape& shape : output_shapes_) shape.AsProto(&application.output_shapes.emplace_back());
    for (int i = 0; i < context->num_inputs(); ++i) {
      ApplicationArgument& argument = application.arguments.emplace_back();
      argument.name = names_[i];
      if (frozen_[i]) OP_REQUIRES_OK(context, Freeze(context, i, &argument.value.emplace()));
    }
    ProgramAnswer answer;
    OP_REQUIRES_OK(context, Lower(context->function_library(), request, &answer));
    Tensor* file = nullptr;
    AllocatorAttributes host;
    host.set_on_host(true);
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &file, host));
    file->scalar<tstring>()() = answer.application_file;
  }

 private:
  Status Freeze(OpKernelContext* context, int index, TensorProto* value) const {
    if (context->input_dtype(index) != DT_RESOURCE) {
      context->input(index).AsProtoTensorContent(value);
      return OkStatus();
    }
    core::RefCountPtr<Var> variable;
    const Status found = LookupResource(context, HandleFromInput(context, index), &variable);
    if (found.ok()) {
      tf_shared_lock lock(*variable->mu());
      if (variable->is_initialized) {
        variable->tensor()->AsProtoTensorContent(value);
        return OkStatus();
      }
    }
    return errors::FailedPrecondition("Could not find variable ", names_[index], ": it has no value yet, and with ",
                                      "freeze_variables=True its value becomes part of the application. Run its ",
                                      "initializer, or restore a checkpoint, before compiling.");
  }

  string function_, path_;
  FunctionDefLibrary library_;
  std::vector<string> names_;
  std::vector<bool> frozen_;
  std::vector<PartialTensorShape> output_shapes_;
};

REGISTER_KERNEL_BUILDER(Name("IpuApplicationCompile").Device(DEVICE_CPU), ApplicationCompileOp);
REGISTER_KERNEL_BUILDER(Name("IpuApplicationCompile").Device(kDeviceType).HostMemory("file"), ApplicationCompileOp);

}  // namespace
}  // namespace tf_ipu_shim
