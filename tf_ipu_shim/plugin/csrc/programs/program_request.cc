// Builds the request for lowering a program from its op's inputs and variables.
#include "programs/program_request.h"

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file writes TensorFlow's messages

VariableMessage DescribeVariable(OpKernelContext* context, const ResourceHandle& handle) {
  VariableMessage description;
  description.name = handle.name();
  TensorShape shape;
  core::RefCountPtr<Var> variable;
  if (LookupResource(context, handle, &variable).ok()) {
    tf_shared_lock lock(*variable->mu());
    if (variable->is_initialized) {
      description.type = variable->tensor()->dtype();
      shape = variable->tensor()->shape();
    }
  }
  const auto known = handle.dtypes_and_shapes();  // a copy: TensorFlow gives it by value
  if (description.type == DT_INVALID && !known.empty() && known[0].shape.AsTensorShape(&shape)) {
    description.type = known[0].dtype;
  }
  shape.AsProto(&description.shape);
  return description;
}

}  // namespace

ArgumentMessage DescribeArgument(OpKernelContext* context, int input) {
  ArgumentMessage argument;
  argument.type = context->input_dtype(input);
  context->input(input).shape().AsProto(&argument.shape);
  if (argument.type == DT_RESOURCE) {
    argument.variable = DescribeVariable(context, context->input(input).flat<ResourceHandle>()(0));
  }
  return argument;
}

Status MakeRequest(OpKernelContext* context, int ordinal, const std::string& function,
                   const FunctionDefLibrary& library, ProgramRequest* request) {
  const OpKernel& program = context->op_kernel();
  if (library.function_size() > 0) {
    request->library = library;
  } else {
    const FunctionLibraryDefinition* known = context->function_library()->GetFunctionLibraryDefinition();
    const FunctionDef* definition = known->Find(function);
    if (definition == nullptr) return errors::NotFound("IpuProgram ", program.name(), " has no function ", function);
    request->library = known->ReachableDefinitions(*definition).ToProto();
    *request->library.add_function() = *definition;  // a function does not reach itself
  }
  request->name = program.name();
  request->function = function;
  request->ordinal = ordinal;
  for (int i = 0; i < context->num_inputs(); ++i) request->arguments.push_back(DescribeArgument(context, i));
  return OkStatus();
}

}  // namespace tf_ipu_shim
