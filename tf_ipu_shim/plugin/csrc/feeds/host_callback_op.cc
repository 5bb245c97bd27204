// `IpuUserReadWriteOp`: calls a host function of a user's shared library, as Graphcore's `cpu_user_operation` does. The
// library needs no Poplar: it receives pointers and element counts.
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/output_shapes.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/env.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

// As a library declares it, with or without `const` in its vectors: the two are the same to a caller.
using Callback = void (*)(const std::vector<void*>& data, const std::vector<std::uint32_t>& number_of_elements,
                          std::vector<void*>& outputs, const std::string& attributes, const std::string& name);

// Callbacks have been told of attributes since level 2; later levels only changed code that runs on tiles.
constexpr std::int32_t kOldestApiLevel = 2;
constexpr std::int32_t kApiLevel = 5;

REGISTER_OP("IpuUserReadWriteOp")
    .Input("input: input_types")
    .Output("output: output_types")
    .Attr("input_types: list(type) >= 0")
    .Attr("output_types: list(type) >= 0")
    .Attr("output_shapes: list(shape) >= 0")
    .Attr("library_path: string")
    .Attr("op_name: string")
    .Attr("separate_gradients: bool")
    .Attr("gradient_size: int")
    .Attr("inputs_with_gradients: list(int) >= 0")
    .Attr("attributes: string = ''")
    .Attr("gradient_attributes: string = ''")
    .SetIsStateful()
    .SetShapeFn(SetOutputShapesFromAttribute);

// A loaded library. It stays loaded, as TensorFlow's own do: code of it may be on any thread's stack.
struct UserLibrary {
  void* handle = nullptr;
  std::mutex calls;  // a library need not be made for several threads, and replicas would call at once

  static Status Get(const std::string& path, UserLibrary** library) {
    static auto* mutex = new std::mutex;
    static auto* libraries = new std::map<std::string, std::unique_ptr<UserLibrary>>;
    std::lock_guard<std::mutex> lock(*mutex);
    std::unique_ptr<UserLibrary>& known = (*libraries)[path];
    if (known == nullptr) {
      auto fresh = std::make_unique<UserLibrary>();
      TF_RETURN_IF_ERROR(Env::Default()->LoadDynamicLibrary(path.c_str(), &fresh->handle));
      TF_RETURN_IF_ERROR(fresh->CheckApiLevel(path));
      known = std::move(fresh);
    }
    *library = known.get();
    return OkStatus();
  }

  Status Find(const std::string& symbol, void** found) const {
    return Env::Default()->GetSymbolFromLibrary(handle, symbol.c_str(), found);
  }

 private:
  Status CheckApiLevel(const std::string& path) const {
    void* level = nullptr;
    if (!Find("custom_op_api_level", &level).ok()) {
      return errors::Internal(path, " does not say which API level it is for. Add to its source: extern \"C\" ",
                              "{ int32_t custom_op_api_level = ", kApiLevel, "; }");
    }
    const std::int32_t value = *static_cast<const std::int32_t*>(level);
    if (value >= kOldestApiLevel && value <= kApiLevel) return OkStatus();
    return errors::Internal("The API level of ", path, " is ", value, ", and those of custom operations are ",
                            kOldestApiLevel, " to ", kApiLevel, ". Set custom_op_api_level in its source, and compile ",
                            "it again.");
  }
};

class HostCallbackOp : public OpKernel {
 public:
  explicit HostCallbackOp(OpKernelConstruction* context) : OpKernel(context) {
    std::vector<PartialTensorShape> shapes;
    std::string op_name;
    std::string path;
    int64_t gradient_size = 0;
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &shapes));
    OP_REQUIRES_OK(context, context->GetAttr("op_name", &op_name));
    OP_REQUIRES_OK(context, context->GetAttr("library_path", &path));
    OP_REQUIRES_OK(context, context->GetAttr("gradient_size", &gradient_size));
    const bool is_gradient = gradient_size > 0;
    OP_REQUIRES_OK(context, context->GetAttr(is_gradient ? "gradient_attributes" : "attributes", &attributes_));
    symbol_ = op_name + (is_gradient ? "_grad" : "");
    where_ = strings::StrCat("The custom operation ", name(), " (", symbol_, " of ", path, ")");
    OP_REQUIRES(context, static_cast<int>(shapes.size()) == context->num_outputs(),
                errors::InvalidArgument(where_, " has ", context->num_outputs(), " outputs and ", shapes.size(),
                                        " shapes of outputs"));
    for (const PartialTensorShape& shape : shapes) {
      OP_REQUIRES(context, shape.AsTensorShape(&shapes_.emplace_back()),
                  errors::InvalidArgument(where_, " has an output of the shape ", shape.DebugString(),
                                          ". Give every dimension in output_shapes: memory is set aside for it"));
    }
    for (const DataType type : context->input_types()) CheckType(context, type);
    for (const DataType type : context->output_types()) CheckType(context, type);
    if (!context->status().ok()) return;
    OP_REQUIRES_OK(context, UserLibrary::Get(path, &library_));
    void* function = nullptr;
    const Status found = library_->Find(symbol_, &function);
    OP_REQUIRES(context, found.ok(),
                errors::NotFound(where_, ": the library has no such function. Declare it extern \"C\". ",
                                 found.message()));
    callback_ = reinterpret_cast<Callback>(function);
  }

  void Compute(OpKernelContext* context) override {
    std::vector<void*> data;
    std::vector<std::uint32_t> number_of_elements;
    std::vector<void*> outputs;
    for (int i = 0; i < context->num_inputs(); ++i) {
      const Tensor& input = context->input(i);
      data.push_back(const_cast<char*>(input.tensor_data().data()));
      number_of_elements.push_back(static_cast<std::uint32_t>(input.NumElements()));
    }
    for (int i = 0; i < context->num_outputs(); ++i) {
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, shapes_[i], &output));
      char* bytes = const_cast<char*>(output->tensor_data().data());
      // Elements that a callback does not write are the same in every run.
      if (output->TotalBytes() > 0) std::memset(bytes, 0, output->TotalBytes());
      outputs.push_back(bytes);
    }
    std::lock_guard<std::mutex> lock(library_->calls);
    try {
      callback_(data, number_of_elements, outputs, attributes_, name());
    } catch (const std::exception& error) {
      context->CtxFailure(errors::Internal(where_, " threw ", error.what()));
    } catch (...) {
      context->CtxFailure(errors::Internal(where_, " threw an object that is not a std::exception"));
    }
  }

 private:
  void CheckType(OpKernelConstruction* context, DataType type) const {
    OP_REQUIRES(context, DataTypeCanUseMemcpy(type),
                errors::InvalidArgument(where_, " receives or returns ", DataTypeString(type),
                                        ", which is not an array of numbers"));
  }

  std::string symbol_, attributes_, where_;
  std::vector<TensorShape> shapes_;
  UserLibrary* library_ = nullptr;
  Callback callback_ = nullptr;
};

REGISTER_KERNEL_BUILDER(Name("IpuUserReadWriteOp").Device(DEVICE_CPU), HostCallbackOp);

}  // namespace
}  // namespace tf_ipu_shim
