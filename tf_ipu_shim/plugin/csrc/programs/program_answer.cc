// Checks each field of a lowering answer against the op that asked for it.
#include "programs/program_answer.h"

#include "device/arena.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file checks TensorFlow's ops

template <typename... Parts>
Status InvalidAnswer(OpKernelContext* context, const Parts&... parts) {
  return errors::Internal("tf_ipu_shim's lowering of program ", context->op_kernel().name(), " answered ", parts...);
}

Status CheckArgument(OpKernelContext* context, const char* field, int32_t argument) {
  if (argument >= 0 && argument < context->num_inputs()) return OkStatus();
  return InvalidAnswer(context, "argument ", argument, " of ", context->num_inputs(), " in ", field);
}

Status CheckVariable(OpKernelContext* context, const char* field, int32_t argument) {
  TF_RETURN_IF_ERROR(CheckArgument(context, field, argument));
  if (context->input_dtype(argument) == DT_RESOURCE) return OkStatus();
  return InvalidAnswer(context, "argument ", argument, " in ", field, ", which is no variable but ",
                       DataTypeString(context->input_dtype(argument)));
}

Status CheckChip(OpKernelContext* context, const char* field, int32_t chip) {
  if (chip >= 0 && chip < kMaxChips) return OkStatus();
  return InvalidAnswer(context, "IPU ", chip, " of at most ", kMaxChips, " in ", field);
}

Status CheckNode(OpKernelContext* context, const ProgramAnswer& answer) {
  const NodeDef& node = answer.node;
  if (node.op().empty()) return InvalidAnswer(context, "no node to run");
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(node.op(), &op_def));
  DataTypeVector takes, gives, given;
  TF_RETURN_IF_ERROR(InOutTypesForNode(node, *op_def, &takes, &gives));
  for (const int32_t argument : answer.inputs) given.push_back(context->input_dtype(argument));
  given.resize(given.size() + answer.replica_variables.size(), DT_RESOURCE);
  if (given != takes) {
    return InvalidAnswer(context, "inputs of types ", DataTypeSliceString(given), " for a ", node.op(), " that takes ",
                         DataTypeSliceString(takes));
  }
  if (gives != context->op_kernel().output_types()) {
    return InvalidAnswer(context, "a ", node.op(), " with results ", DataTypeSliceString(gives), " instead of ",
                         DataTypeSliceString(context->op_kernel().output_types()));
  }
  return OkStatus();
}

}  // namespace

Status CheckAnswer(OpKernelContext* context, const ProgramAnswer& answer) {
  if (static_cast<int64_t>(answer.variable_chips.size()) != context->num_inputs()) {
    return InvalidAnswer(context, answer.variable_chips.size(), " of ", context->num_inputs(), " variable_chips");
  }
  for (int32_t argument = 0; argument < context->num_inputs(); ++argument) {
    if (answer.variable_chips[argument] == -1) continue;
    TF_RETURN_IF_ERROR(CheckChip(context, "variable_chips", answer.variable_chips[argument]));
    TF_RETURN_IF_ERROR(CheckVariable(context, "variable_chips", argument));
  }
  for (const int32_t argument : answer.inputs) TF_RETURN_IF_ERROR(CheckArgument(context, "inputs", argument));
  for (const ReplicaVariable& copy : answer.replica_variables) {
    TF_RETURN_IF_ERROR(CheckVariable(context, "replica_variables", copy.argument));
    TF_RETURN_IF_ERROR(CheckChip(context, "replica_variables", copy.chip));
  }
  if (answer.compilation.has_value() && answer.compilation->events.has_value()) {
    const ProgramEvents& events = *answer.compilation->events;
    for (const int32_t argument : events.variables) TF_RETURN_IF_ERROR(CheckVariable(context, "events", argument));
    for (const int32_t argument : events.written) TF_RETURN_IF_ERROR(CheckVariable(context, "events", argument));
  }
  return CheckNode(context, answer);
}

}  // namespace tf_ipu_shim
