#include "program_request.h"

#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file writes TensorFlow's messages

struct VariableFacts {
  std::string name;
  DataType type = DT_INVALID;  // where it is not known
  TensorShape shape;
};

VariableFacts FactsOf(OpKernelContext* context, const ResourceHandle& handle) {
  VariableFacts facts;
  facts.name = handle.name();
  core::RefCountPtr<Var> variable;
  if (LookupResource(context, handle, &variable).ok()) {
    tf_shared_lock lock(*variable->mu());
    if (variable->is_initialized) {
      facts.type = variable->tensor()->dtype();
      facts.shape = variable->tensor()->shape();
    }
  }
  const auto known = handle.dtypes_and_shapes();  // a copy: TensorFlow gives it by value
  if (facts.type == DT_INVALID && !known.empty() && known[0].shape.AsTensorShape(&facts.shape)) {
    facts.type = known[0].dtype;
  }
  return facts;
}

}  // namespace

Status MakeRequest(OpKernelContext* context, const IpuDevice& device, const std::string& function,
                   const FunctionDefLibrary& library, GraphDef* request) {
  const OpKernel& program = context->op_kernel();
  if (library.function_size() > 0) {
    *request->mutable_library() = library;
  } else {
    const FunctionLibraryDefinition* known = context->function_library()->GetFunctionLibraryDefinition();
    const FunctionDef* definition = known->Find(function);
    if (definition == nullptr) return errors::NotFound("IpuProgram ", program.name(), " has no function ", function);
    *request->mutable_library() = known->ReachableDefinitions(*definition).ToProto();
    *request->mutable_library()->add_function() = *definition;  // a function does not reach itself
  }
  NodeDef* node = request->add_node();
  node->set_name(program.name());
  node->set_op("IpuProgram");
  node->set_device(program.def().device());
  AddNodeAttr("_function", function, node);
  AddNodeAttr("Tin", program.input_types(), node);
  AddNodeAttr("Tout", program.output_types(), node);
  AddNodeAttr("_ordinal", device.ordinal(), node);
  std::vector<TensorShape> shapes, variable_shapes;
  DataTypeVector variable_types;
  std::vector<string> variable_names;
  for (int i = 0; i < context->num_inputs(); ++i) {
    shapes.push_back(context->input(i).shape());
    VariableFacts facts;
    if (context->input_dtype(i) == DT_RESOURCE) facts = FactsOf(context, context->input(i).flat<ResourceHandle>()(0));
    variable_types.push_back(facts.type);
    variable_shapes.push_back(facts.shape);
    variable_names.push_back(facts.name);
  }
  AddNodeAttr("_arg_shapes", shapes, node);
  AddNodeAttr("_variable_types", variable_types, node);
  AddNodeAttr("_variable_shapes", variable_shapes, node);
  AddNodeAttr("_variable_names", variable_names, node);
  return OkStatus();
}

}  // namespace tf_ipu_shim
