// Wraps one op in a function that an `IpuProgram` kernel lowers, plans and runs like any other program.
#include "kernels/op_programs.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "kernels/convolutions.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file makes TensorFlow's kernels

const std::set<std::string>& OpsWithDataFormat() {
  static const auto* ops = new std::set<std::string>(WithConvolutions(
      {"AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "FusedBatchNorm", "FusedBatchNormGrad",
       "FusedBatchNormGradV2", "FusedBatchNormGradV3", "FusedBatchNormV2", "FusedBatchNormV3", "MaxPool", "MaxPool3D",
       "MaxPool3DGrad", "MaxPoolGrad"}));
  return *ops;
}

// Ops whose CPU kernels leave 16-bit numbers out.
const std::set<std::string>& OpsWithoutFloat16Kernel() {
  static const auto* ops = new std::set<std::string>{"AvgPool3D", "AvgPool3DGrad", "MaxPool3D", "MaxPool3DGrad"};
  return *ops;
}

std::string DataFormatOf(const NodeDef& node) {
  const auto found = node.attr().find("data_format");
  return found == node.attr().end() ? "" : found->second.s();
}

bool IsHalf(const NodeDef& node) {
  const auto found = node.attr().find("T");
  return found != node.attr().end() && found->second.type() == DT_HALF;
}

// A function that runs the op on its arguments. Its attributes are TensorFlow's own: what marks it for a placer stays
// with the program.
FunctionDef FunctionOf(const OpKernelConstruction& construction, const OpDef& op, const std::string& name) {
  FunctionDef function;
  OpDef* signature = function.mutable_signature();
  signature->set_name(name);
  NodeDef* node = function.add_node_def();
  node->set_name("op");
  node->set_op(op.name());
  for (const auto& attribute : construction.def().attr()) {
    if (attribute.first.empty() || attribute.first[0] == '_') continue;
    (*node->mutable_attr())[attribute.first] = attribute.second;
  }
  for (int i = 0; i < construction.num_inputs(); ++i) {
    OpDef::ArgDef* argument = signature->add_input_arg();
    argument->set_name(strings::StrCat("argument_", i));
    argument->set_type(construction.input_type(i));
    node->add_input(argument->name());
  }
  for (int i = 0; i < construction.num_outputs(); ++i) {
    OpDef::ArgDef* result = signature->add_output_arg();
    result->set_name(strings::StrCat("result_", i));
    result->set_type(construction.output_type(i));
    (*function.mutable_ret())[result->name()] = strings::StrCat("op:", op.output_arg(i).name(), ":0");
  }
  return function;
}

}  // namespace

bool RunsAsProgram(const NodeDef& node) {
  if (OpsWithoutFloat16Kernel().count(node.op()) && IsHalf(node)) return true;
  return OpsWithDataFormat().count(node.op()) && DataFormatOf(node).rfind("NC", 0) == 0;
}

Status MakeOpProgram(OpKernelConstruction* construction, OpKernel** kernel) {
  static std::atomic<int64_t> serial{0};
  const NodeDef& op = construction->def();
  const OpDef* definition = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(op.op(), &definition));
  const std::string function = strings::StrCat("ipu_op_", op.op(), "_", serial++);
  FunctionDefLibrary library;
  *library.add_function() = FunctionOf(*construction, *definition, function);
  const auto types = [](DataTypeSlice slice) { return DataTypeVector(slice.begin(), slice.end()); };
  const DataTypeVector inputs = types(construction->input_types()), outputs = types(construction->output_types());
  NodeDef node;
  node.set_name(op.name());
  node.set_op("IpuProgram");
  node.set_device(op.device());
  *node.mutable_input() = op.input();
  AddNodeAttr("function", function, &node);
  AddNodeAttr("library", library.SerializeAsString(), &node);
  AddNodeAttr("device_ordinal", -1, &node);
  AddNodeAttr("single_op", true, &node);
  AddNodeAttr("Tin", inputs, &node);
  AddNodeAttr("Tout", outputs, &node);
  AddNodeAttr("output_shapes", std::vector<PartialTensorShape>(), &node);
  const OpDef* program = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(node.op(), &program));
  const auto properties = std::make_shared<NodeProperties>(program, node, inputs, outputs);
  return CreateOpKernel(DeviceType(kDeviceType), construction->device(),
                        construction->device()->GetAllocator(AllocatorAttributes()), construction->function_library(),
                        construction->resource_manager(), properties, construction->graph_def_version(), kernel);
}

namespace {

// Whether a float16 kernel exists already: some TensorFlow versions have one for the CPU.
bool HasKernel(const std::string& op) {
  const KernelList registered = GetRegisteredKernelsForOp(op);  // a copy, which the loop's range would not keep
  for (const KernelDef& kernel : registered.kernel()) {
    if (kernel.device_type() != kDeviceType) continue;
    bool fits = true;
    for (const KernelDef::AttrConstraint& constraint : kernel.constraint()) {
      if (constraint.name() != "T") continue;
      const auto& types = constraint.allowed_values().list().type();
      fits = std::find(types.begin(), types.end(), DT_HALF) != types.end();
    }
    if (fits) return true;
  }
  return false;
}

class OpProgramFactory : public kernel_factory::OpKernelFactory {
 public:
  OpKernel* Create(OpKernelConstruction* construction) override {
    OpKernel* kernel = nullptr;
    const Status status = MakeOpProgram(construction, &kernel);
    if (!status.ok()) construction->CtxFailure(status);
    return status.ok() ? kernel : nullptr;
  }
};

}  // namespace

void RegisterOpPrograms() {
  static const bool registered = [] {
    for (const std::string& op : OpsWithoutFloat16Kernel()) {
      if (HasKernel(op)) continue;
      const KernelDef* definition =
          KernelDefBuilder(op.c_str()).Device(kDeviceType).TypeConstraint("T", DT_HALF).Build();
      kernel_factory::OpKernelRegistrar registrar(definition, "IpuOpProgram", std::make_unique<OpProgramFactory>());
    }
    return true;
  }();
  (void)registered;
}

}  // namespace tf_ipu_shim
