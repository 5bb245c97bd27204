// `IpuProgram`: one op in the user's graph, lowered at its first run. Only then is it known how many IPUs there are:
// TensorFlow 1 scripts often configure the system after they have built, even finalised, the graph.
#include <memory>
#include <vector>

#include "counters.h"
#include "device.h"
#include "lowering_call.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_description.pb.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuProgram")
    .Input("args: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("function: string")
    // The function and all it calls, as a serialised FunctionDefLibrary. Were they in the graph's own library, grappler
    // would rewrite them for op-by-op execution (loops taken apart, fused kernels) and XLA could not compile them.
    // Empty where `function` is in the runtime's library: a jit-compiled call, which grappler leaves alone.
    .Attr("library: string = ''")
    .Attr("output_shapes: list(shape) >= 0 = []")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      std::vector<PartialTensorShape> shapes;
      TF_RETURN_IF_ERROR(context->GetAttr("output_shapes", &shapes));
      if (shapes.empty()) return shape_inference::UnknownShape(context);
      for (int i = 0; i < context->num_outputs() && i < static_cast<int>(shapes.size()); ++i) {
        shape_inference::ShapeHandle shape;
        TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shapes[i], &shape));
        context->set_output(i, shape);
      }
      return OkStatus();
    });

// What an `IpuProgram` runs under one configuration: a kernel, and the chip on which each variable lives.
struct LoweredProgram {
  int64_t epoch = 0;
  std::unique_ptr<OpKernel> kernel;
  std::vector<int64_t> variable_chips;          // per input; -1 for what is no variable
  std::vector<std::atomic<const void*>> homes;  // per input: the buffer last seen in its chip's arena

  explicit LoweredProgram(size_t inputs) : homes(inputs) {}
};

class IpuProgramOp : public AsyncOpKernel {
 public:
  explicit IpuProgramOp(OpKernelConstruction* context)
      : AsyncOpKernel(context), graph_def_version_(context->graph_def_version()) {
    OP_REQUIRES_OK(context, context->GetAttr("function", &function_));
    string library;
    OP_REQUIRES_OK(context, context->GetAttr("library", &library));
    OP_REQUIRES(context, library_.ParseFromString(library),
                errors::InvalidArgument("IpuProgram ", name(), " holds no readable function library"));
    OP_REQUIRES_OK(context, context->GetAttr("Tin", &input_types_));
    OP_REQUIRES_OK(context, context->GetAttr("Tout", &output_types_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    IpuDevice* device = AsIpuDevice(context->function_library()->device());
    OP_REQUIRES_ASYNC(context, device != nullptr,
                      errors::FailedPrecondition("IpuProgram ", name(), " is placed on ",
                                                 context->function_library()->device()->name(), ", not on an IPU"),
                      done);
    LoweredProgram* program = nullptr;
    OP_REQUIRES_OK_ASYNC(context, Lowered(context, device, &program), done);
    OP_REQUIRES_OK_ASYNC(context, BringVariablesHome(context, device, program), done);
    ++CountersOf(device->ordinal()).programs_run;

    // The program takes over this op's context: same inputs, same outputs.
    const OpKernel* const self = context->params()->op_kernel;
    OpKernel* const kernel = program->kernel.get();
    context->params()->op_kernel = kernel;
    auto finish = [context, self, done = std::move(done)]() {
      context->params()->op_kernel = const_cast<OpKernel*>(self);
      done();
    };
    if (AsyncOpKernel* async = kernel->AsAsync()) {
      device->ComputeAsync(async, context, std::move(finish));
    } else {
      device->Compute(kernel, context);
      finish();
    }
  }

 private:
  Status Lowered(OpKernelContext* context, IpuDevice* device, LoweredProgram** program) {
    mutex_lock lock(mutex_);
    if (programs_.empty() || programs_.back()->epoch != CurrentEpoch()) {
      GraphDef request, lowered;
      TF_RETURN_IF_ERROR(AddFunctions(context->function_library(), library_));
      TF_RETURN_IF_ERROR(Request(context, device, &request));
      TF_RETURN_IF_ERROR(Lower(context->function_library(), request, &lowered));
      TF_RETURN_IF_ERROR(AddFunctions(context->function_library(), lowered.library()));
      auto fresh = std::make_unique<LoweredProgram>(input_types_.size());
      // Configuring happens on the way (the default device is made at first use), so the epoch is read again.
      fresh->epoch = CurrentEpoch();
      TF_RETURN_IF_ERROR(GetNodeAttr(lowered.node(0), "_variable_chips", &fresh->variable_chips));
      if (fresh->variable_chips.size() != input_types_.size()) {
        return errors::Internal("tf_ipu_shim's lowering placed ", fresh->variable_chips.size(), " of ",
                                input_types_.size(), " inputs");
      }
      TF_RETURN_IF_ERROR(MakeKernel(context, lowered.node(0), &fresh->kernel));
      ++CountersOf(device->ordinal()).programs_lowered;
      programs_.push_back(std::move(fresh));
    }
    *program = programs_.back().get();
    return OkStatus();
  }

  // The call as a node, with what is known of its arguments now, and all functions it reaches.
  Status Request(OpKernelContext* context, IpuDevice* device, GraphDef* request) {
    if (library_.function_size() > 0) {
      *request->mutable_library() = library_;
    } else {
      const FunctionLibraryDefinition* library = context->function_library()->GetFunctionLibraryDefinition();
      const FunctionDef* function = library->Find(function_);
      if (function == nullptr) return errors::NotFound("IpuProgram ", name(), " has no function ", function_);
      *request->mutable_library() = library->ReachableDefinitions(*function).ToProto();
      *request->mutable_library()->add_function() = *function;  // a function does not reach itself
    }
    NodeDef* node = request->add_node();
    node->set_name(name());
    node->set_op("IpuProgram");
    node->set_device(def().device());
    AddNodeAttr("_function", function_, node);
    AddNodeAttr("Tin", input_types_, node);
    AddNodeAttr("Tout", output_types_, node);
    AddNodeAttr("_ordinal", device->ordinal(), node);
    std::vector<TensorShape> shapes, variable_shapes;
    DataTypeVector variable_types;
    std::vector<string> variable_names;
    for (int i = 0; i < context->num_inputs(); ++i) {
      shapes.push_back(context->input(i).shape());
      TensorShape variable_shape;
      DataType variable_type = DT_INVALID;
      string variable_name;
      if (context->input_dtype(i) == DT_RESOURCE) {
        const ResourceHandle handle = context->input(i).flat<ResourceHandle>()(0);
        variable_name = handle.name();
        core::RefCountPtr<Var> variable;
        if (LookupResource(context, handle, &variable).ok()) {
          tf_shared_lock variable_lock(*variable->mu());
          if (variable->is_initialized) {
            variable_type = variable->tensor()->dtype();
            variable_shape = variable->tensor()->shape();
          }
        }
        if (variable_type == DT_INVALID && !handle.dtypes_and_shapes().empty()) {
          const DtypeAndPartialTensorShape& known = handle.dtypes_and_shapes()[0];
          if (known.shape.AsTensorShape(&variable_shape)) variable_type = known.dtype;
        }
      }
      variable_types.push_back(variable_type);
      variable_shapes.push_back(variable_shape);
      variable_names.push_back(variable_name);
    }
    AddNodeAttr("_arg_shapes", shapes, node);
    AddNodeAttr("_variable_types", variable_types, node);
    AddNodeAttr("_variable_shapes", variable_shapes, node);
    AddNodeAttr("_variable_names", variable_names, node);
    return OkStatus();
  }

  Status MakeKernel(OpKernelContext* context, NodeDef node, std::unique_ptr<OpKernel>* kernel) {
    for (size_t i = 0; i < input_types_.size(); ++i) node.add_input(strings::StrCat("input:", i));
    const OpDef* op_def = nullptr;
    TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(node.op(), &op_def));
    const auto properties = std::make_shared<NodeProperties>(op_def, node, input_types_, output_types_);
    FunctionLibraryRuntime* runtime = context->function_library();
    Device* device = runtime->device();
    OpKernel* made = nullptr;
    TF_RETURN_IF_ERROR(CreateOpKernel(DeviceType(kDeviceType), device, device->GetAllocator(AllocatorAttributes()),
                                      runtime, device->resource_manager(), properties, graph_def_version_, &made));
    kernel->reset(made);
    return OkStatus();
  }

  // A variable is created on the TensorFlow device, before anybody knows which chip will use it. When the program is
  // loaded its value moves to that chip's memory, as weights are uploaded to the real one.
  Status BringVariablesHome(OpKernelContext* context, IpuDevice* device, LoweredProgram* program) {
    for (size_t i = 0; i < program->variable_chips.size(); ++i) {
      const int64_t chip = program->variable_chips[i];
      if (chip < 0) continue;
      core::RefCountPtr<Var> variable;
      // An uninitialised variable is reported by the op that reads it, in TensorFlow's own words.
      if (!LookupResource(context, HandleFromInput(context, i), &variable).ok()) continue;
      mutex_lock lock(*variable->mu());
      if (!variable->is_initialized || !variable->tensor()->IsInitialized()) continue;
      Tensor* tensor = variable->tensor();
      const void* const buffer = tensor->data();
      if (buffer == program->homes[i].load(std::memory_order_relaxed)) continue;
      Arena* arena = ArenaOf(device->ordinal(), chip);
      TensorDescription description;
      tensor->FillDescription(&description);
      if (tensor->TotalBytes() > 0 && description.allocation_description().allocator_name() != arena->Name()) {
        if (!DataTypeCanUseMemcpy(tensor->dtype())) {
          return errors::InvalidArgument("Variable ", variable->DebugString(), " on ", device->name(), " holds ",
                                         DataTypeString(tensor->dtype()),
                                         ", which an IPU has no memory for. Place it on the CPU.");
        }
        Tensor moved(arena, tensor->dtype(), tensor->shape());
        if (!moved.IsInitialized()) {
          return errors::ResourceExhausted("The host has no memory left for a variable of ", tensor->TotalBytes(),
                                           " bytes on IPU ", chip);
        }
        std::memcpy(moved.data(), tensor->data(), tensor->TotalBytes());
        CountersOf(device->ordinal()).host_to_device.Add(tensor->TotalBytes());
        *tensor = moved;
      }
      program->homes[i].store(tensor->data(), std::memory_order_relaxed);
    }
    return OkStatus();
  }

  const int graph_def_version_;
  string function_;
  FunctionDefLibrary library_;
  DataTypeVector input_types_, output_types_;
  mutex mutex_;
  // Kept until the op goes: once a run calls `done` the session may be gone, and a kernel must not outlive it.
  std::vector<std::unique_ptr<LoweredProgram>> programs_ TF_GUARDED_BY(mutex_);
};

REGISTER_KERNEL_BUILDER(Name("IpuProgram").Device(kDeviceType), IpuProgramOp);

}  // namespace
}  // namespace tf_ipu_shim
