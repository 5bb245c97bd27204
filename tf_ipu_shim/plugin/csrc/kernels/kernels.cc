// Registers CPU kernels for the IPU device, except those of host ops and reference variables. The factory makes the CPU
// kernel, which then allocates from the chip's arena. Ops that the CPU kernel refuses and XLA supports become programs
// (`op_programs`).
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "device/device.h"
#include "floats/float16_overflow.h"
#include "floats/float16_accumulation.h"
#include "floats/float16_via_float32.h"
#include "launches/launch.h"
#include "kernels/changed_node.h"
#include "kernels/one_dnn.h"
#include "kernels/one_dnn_or_plain.h"
#include "kernels/op_programs.h"
#include "floats/stochastic_rounding.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is TensorFlow's kernel registry, walked

// Reference variables have no kernel on the IPU: the placer then prints the error of the tutorial's
// troubleshooting section, word for word.
const std::set<std::string>& UnsupportedOps() {
  static const auto* ops = new std::set<std::string>{
      "Variable",   "VariableV2", "TemporaryVariable", "DestroyTemporaryVariable", "Assign",
      "AssignAdd",  "AssignSub",  "CountUpTo",         "ScatterUpdate",            "ScatterAdd",
      "ScatterSub", "ScatterMul", "ScatterDiv",        "IsVariableInitialized"};
  return *ops;
}

// Questions and orders to the driver: they run on the host, as Graphcore's do.
const std::set<std::string>& HostOps() {
  static const auto* ops = new std::set<std::string>{
      "IpuConfigureHardware", "IpuClearAllXlaCompilationCaches", "IpuResetDevices",  "IpuResetSeed",
      "IpuEventTrace",        "IpuModelUsed",                    "IpuGetConfiguration", "IpuGetNumDevices",
      "IpuUseSyntheticDataFor"};
  return *ops;
}

Status MakeCpuKernel(OpKernelConstruction* construction, NodeDef node, std::unique_ptr<OpKernel>* kernel) {
  std::shared_ptr<const NodeProperties> properties;
  TF_RETURN_IF_ERROR(PropertiesOf(std::move(node), &properties));
  // XLA's launch kernels take their platform from the device they are made for.
  DeviceBase* device = construction->device();
  IpuDevice* const ipu = AsIpuDevice(device);
  if (ipu != nullptr) device = ipu->Chip(0);
  if (ipu != nullptr && properties->node_def.op() == "XlaLaunch") {
    return MakeLaunch(construction, device, properties, ipu->IsInterruptible(), kernel);
  }
  OpKernel* made = nullptr;
  TF_RETURN_IF_ERROR(CreateOpKernel(DeviceType("CPU"), device,
                                    construction->device()->GetAllocator(AllocatorAttributes()),
                                    construction->function_library(), construction->resource_manager(), properties,
                                    construction->graph_def_version(), &made));
  kernel->reset(made);
  return OkStatus();
}

Status MakeDelegate(OpKernelConstruction* construction, OpKernel** kernel) {
  if (RunsAsProgram(construction->def())) return MakeOpProgram(construction, kernel);
  NodeDef node = construction->def();
  IpuDevice* const ipu = AsIpuDevice(construction->device());
  const bool adds_up_halves = ipu != nullptr && AccumulatesFloat16(node);
  if (adds_up_halves) node = WithFloat32Attributes(std::move(node));
  UseOneDnnKernel(&node);
  const auto make = [&](NodeDef op, std::unique_ptr<OpKernel>* made) -> Status {
    TF_RETURN_IF_ERROR(MakeCpuKernel(construction, std::move(op), made));
    if (adds_up_halves) made->reset(MakeFloat32ComputeKernel(construction, std::move(*made), ipu->ordinal()));
    return OkStatus();
  };
  std::unique_ptr<OpKernel> made;
  TF_RETURN_IF_ERROR(make(node, &made));
  if (NeedsPlainKernel(node)) {
    std::unique_ptr<OpKernel> plain;
    TF_RETURN_IF_ERROR(make(WithoutOneDnnPrefix(node), &plain));
    made.reset(MakeOneDnnOrPlainKernel(construction, std::move(made), std::move(plain)));
  }
  if (ipu != nullptr && !adds_up_halves && RoundsToFloat16(*made)) {
    made.reset(MakeRoundingKernel(construction, std::move(made), ipu->ordinal()));
  }
  if (ipu != nullptr && MayOverflow(*made))
    made.reset(MakeSaturatingKernel(construction, std::move(made), ipu->ordinal()));
  *kernel = made.release();
  return OkStatus();
}

class DelegateFactory : public kernel_factory::OpKernelFactory {
 public:
  OpKernel* Create(OpKernelConstruction* construction) override {
    OpKernel* kernel = nullptr;
    const Status status = MakeDelegate(construction, &kernel);
    if (status.ok()) return kernel;
    construction->CtxFailure(status);
    return nullptr;
  }
};

bool RegisterDelegates() {
  const KernelList all = GetAllRegisteredKernels();
  std::set<std::string> with_cpu_kernel;
  std::set<std::string> with_ipu_kernel;
  for (const KernelDef& kernel : all.kernel()) {
    if (kernel.device_type() == "CPU") with_cpu_kernel.insert(kernel.op());
    if (kernel.device_type() == kDeviceType) with_ipu_kernel.insert(kernel.op());
  }
  for (const KernelDef& kernel : all.kernel()) {
    // Control flow (`Enter`, `NextIteration`, ...) is registered for any device, and for no device in particular.
    const bool for_any_device = kernel.device_type() == "DEFAULT" && !with_cpu_kernel.count(kernel.op());
    if (kernel.device_type() != "CPU" && !for_any_device) continue;
    if (UnsupportedOps().count(kernel.op()) || HostOps().count(kernel.op())) continue;
    if (with_ipu_kernel.count(kernel.op())) continue;
    auto* definition = new KernelDef(kernel);  // the registrar takes it
    definition->set_device_type(kDeviceType);
    // There is one memory here: a host argument would only add copies, and would split loops between devices
    // ("N nodes in a cycle").
    definition->clear_host_memory_arg();
    kernel_factory::OpKernelRegistrar registrar(definition, "IpuDelegate", std::make_unique<DelegateFactory>());
  }
  return true;
}

}  // namespace

// Called once by the library's entry point, after TensorFlow's own kernels have registered.
void RegisterKernels() {
  static const bool registered = RegisterDelegates();
  (void)registered;
  RegisterOpPrograms();  // last: an op that has a kernel of the IPU's own is no delegate
}

}  // namespace tf_ipu_shim
