// Checks each op's operands and results for floating-point exceptions.
#include "floats/float_checks.h"

#include <set>
#include <string>

#include "floats/float_poles.h"
#include "floats/float_values.h"
#include "floats/float16_overflow.h"
#include "kernels/one_dnn.h"
#include "tensorflow/core/platform/errors.h"
#include "floats/updated_variables.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file looks at TensorFlow's tensors

// The lowering's text for an op: its name, type and the user's line.
constexpr char kDescriptionAttr[] = "_ipu_op";

bool StartsWith(const std::string& text, const char* beginning) { return text.rfind(beginning, 0) == 0; }

// Ops that forward, select, test or move elements and compute none; ops that are checked part by part.
bool OnlyMovesData(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{
      "AssignVariableOp", "BatchToSpace", "BatchToSpaceND", "Bitcast", "BroadcastTo", "Case", "CheckNumerics", "Concat",
      "ConcatV2", "ConjugateTranspose", "Copy", "DebugIdentity", "DeepCopy", "DepthToSpace", "Diag", "DiagPart",
      "DynamicPartition", "DynamicStitch", "Empty", "EnsureShape", "Enter", "Exit", "ExpandDims", "ExtractImagePatches",
      "Fill", "Gather", "GatherNd", "GatherV2", "Identity", "IdentityN", "If", "InplaceUpdate", "IsFinite", "IsInf",
      "IsNan", "Merge", "MirrorPad", "NextIteration", "OneHot", "OnesLike", "Pack", "Pad", "PadV2",
      "ParallelDynamicStitch", "PartitionedCall", "PreventGradient", "Print", "PrintV2", "Rank", "RefSwitch", "Reshape",
      "ResourceGather", "ResourceGatherNd", "Reverse", "ReverseSequence", "ReverseV2", "Roll", "Select", "SelectV2",
      "Shape", "ShapeN", "Size", "Slice", "Snapshot", "SpaceToBatch", "SpaceToBatchND", "SpaceToDepth", "Split",
      "SplitV", "Squeeze", "StatefulPartitionedCall", "StatelessCase", "StatelessIf", "StatelessWhile", "StopGradient",
      "StridedSlice", "StridedSliceGrad", "Switch", "TensorScatterUpdate", "Tile", "Transpose", "Unpack", "Where",
      "While", "XlaLaunch", "ZerosLike", "_Arg", "_DeviceArg", "_DeviceRetval", "_EagerConst", "_HostRecv", "_HostSend",
      "_Recv", "_Retval", "_Send", "_SwitchN"};
  for (const char* family : {"Ipu", "MatrixBandPart", "MatrixDiag", "MatrixSetDiag", "PopDatastream", "TensorArray",
                             "TensorList"}) {
    if (StartsWith(op, family)) return true;
  }
  return ops->count(op) > 0;
}

Status FloatingPointError(OpKernelContext* context, int ordinal, int chip, const char* exception, const char* what,
                          const char* option) {
  const NodeDef& node = context->op_kernel().def();
  const auto found = node.attr().find(kDescriptionAttr);
  const std::string op = found != node.attr().end()
                             ? found->second.s()
                             : node.name() + " (" + WithoutOneDnnPrefix(absl::string_view(node.op())) + ")";
  return errors::Internal("[Poplar][Execute engine] application_runtime_error: [Recovery action: IPU_RESET] Tiles in ",
                          "excepted state (floating point exception, ", exception, "). IPU ", chip, " of /device:IPU:",
                          ordinal, ", op ", op, ": ", what, ". Look at what this op is given, or switch the exception ",
                          "off with IPUConfig.floating_point_behaviour.", option,
                          " = False. The IPU will be reset the next time a program is executed.");
}

}  // namespace

std::atomic<uint8_t> float_checks[kMaxDevices] = {};

void FloatChecker::Begin(uint8_t checks, OpKernelContext* context) {
  const std::string& op = context->op_kernel().def().op();
  if (OnlyMovesData(op)) return;
  checks_ = checks;
  SpecialValues found;
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (IsRefType(context->input_dtype(i)) || !context->has_input(i) || !IsFloat(context->input_dtype(i))) continue;
    has_operands_ |= context->input(i).NumElements() > 0;
    CountSpecialValues(context->input(i), &found);
  }
  ForEachUpdatedVariable(context, [&found](Tensor* variable) { CountSpecialValues(*variable, &found); });
  has_operands_ |= op == "Cast";
  may_overflow_ = MayOverflow(context->op_kernel());
  if (may_overflow_) divisor_ = DivisorOf(context);
  nan_ = found.nan;
  infinite_ = found.infinite > 0;
  if (has_operands_) poles_ = CountPoles(context);
}

Status FloatChecker::End(OpKernelContext* context, int ordinal, int chip) {
  if (checks_ == 0 || !has_operands_) return OkStatus();
  SpecialValues found;
  const auto look = [&found](Tensor* tensor) { CountSpecialValues(*tensor, &found); };
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (Tensor* output = context->mutable_output(i)) look(output);
  }
  ForEachUpdatedVariable(context, look);
  const bool overflows = !infinite_ && found.infinite > poles_;
  if (checks_ & kInvalidOperation) {
    if (nan_)
      return FloatingPointError(context, ordinal, chip, "invalid operation", "an operand is not a number (NaN)", "inv");
    if (found.nan) {
      return FloatingPointError(context, ordinal, chip, "invalid operation",
                                "a result is not a number (NaN), and no operand is", "inv");
    }
  }
  if (checks_ & kDivisionByZero && poles_ > 0) {
    return FloatingPointError(context, ordinal, chip, "division by zero", "a finite number was divided by zero",
                              "div0");
  }
  if (overflows && checks_ & kOverflow) {
    return FloatingPointError(context, ordinal, chip, "overflow", "a result is infinite, and no operand is", "oflo");
  }
  if (!(checks_ & kNanOnOverflow)) {
    return may_overflow_ ? Saturate(context, divisor_, ordinal) : OkStatus();
  }
  if (!overflows || poles_ > 0) return OkStatus();
  bool replaced = false;
  const auto replace = [&replaced](Tensor* tensor) {
    SpecialValues own;
    if (tensor->dtype() == DT_HALF) CountSpecialValues(*tensor, &own);
    if (own.infinite > 0) SetInfinitiesToNan(tensor);
    replaced |= own.infinite > 0;
  };
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (Tensor* output = context->mutable_output(i)) replace(output);
  }
  ForEachUpdatedVariable(context, replace);
  if (replaced && checks_ & kInvalidOperation) {
    return FloatingPointError(context, ordinal, chip, "invalid operation",
                              "a float16 result overflowed, which gives NaN (floating_point_behaviour.nanoo)", "inv");
  }
  return OkStatus();
}

}  // namespace tf_ipu_shim

// Bits of `FloatCheck` for a device.
extern "C" void ipu_set_float_checks(int32_t device, int32_t checks) {
  if (device < 0 || device >= tf_ipu_shim::kMaxDevices) return;
  tf_ipu_shim::float_checks[device] = static_cast<uint8_t>(checks);
}
