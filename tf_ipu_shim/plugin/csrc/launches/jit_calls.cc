// Makes `tf.function(jit_compile=True)` on an IPU an `IpuProgram`. TensorFlow's XLA kernel creator would build the
// launch from the TensorFlow device itself and fail with "could not find registered platform".
#include "device/device.h"
#include "tensorflow/compiler/jit/xla_kernel_creator.h"
#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file extends TensorFlow's kernel creation

class IpuKernelCreator : public XlaKernelCreator {
 public:
  Status CreateKernel(FunctionLibraryRuntime* runtime, const std::shared_ptr<const NodeProperties>& properties,
                      std::unique_ptr<OpKernel>* kernel) const override {
    IpuDevice* device = AsIpuDevice(runtime->device());
    if (device == nullptr) return XlaKernelCreator::CreateKernel(runtime, properties, kernel);
    const NodeDef& call = properties->node_def;
    const auto named = call.attr().find("f");
    const bool is_call_op = named != call.attr().end() && named->second.has_func();
    NodeDef node;
    node.set_name(call.name());
    node.set_op("IpuProgram");
    node.set_device(call.device());
    *node.mutable_input() = call.input();
    AddNodeAttr("function", is_call_op ? named->second.func().name() : call.op(), &node);
    AddNodeAttr("library", "", &node);
    AddNodeAttr("device_ordinal", -1, &node);
    AddNodeAttr("single_op", false, &node);
    AddNodeAttr("Tin", properties->input_types, &node);
    AddNodeAttr("Tout", properties->output_types, &node);
    AddNodeAttr("output_shapes", std::vector<PartialTensorShape>(), &node);
    const OpDef* op_def = nullptr;
    TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(node.op(), &op_def));
    const auto program =
        std::make_shared<NodeProperties>(op_def, node, properties->input_types, properties->output_types);
    OpKernel* made = nullptr;
    TF_RETURN_IF_ERROR(CreateOpKernel(DeviceType(kDeviceType), device, device->GetAllocator(AllocatorAttributes()),
                                      runtime, device->resource_manager(), program, runtime->graph_def_version(),
                                      &made));
    kernel->reset(made);
    return OkStatus();
  }
};

}  // namespace

void RegisterJitCalls() {
  static IpuKernelCreator* const creator = [] {
    auto* made = new IpuKernelCreator;  // the registry keeps it for the life of the process
    RegisterDefaultCustomKernelCreator(made);
    return made;
  }();
  (void)creator;
}

}  // namespace tf_ipu_shim
