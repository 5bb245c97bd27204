// Gets the HLO of a function for the memory plan, as TensorFlow's `experimental_get_compiler_ir` does but without
// holding Python's lock. Variables are replaced by placeholders whose memory is never accessed.
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launches/conversion_errors.h"
#include "process/log_noise.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/errors.h"
#include "tf_private/compiler_ir.h"

namespace tf_ipu_shim {
namespace {

// The number of the stage `hlo_serialized`: later versions have two more before it. There the number of 2.15 is that
// of `hlo`, which is text: the first form of a process is asked for twice.
constexpr int kSerialized = 2, kSerializedLater = 4;
std::atomic<int> serialized{kSerialized};
constexpr char kText[] = "HloModule ";

using Released = std::unique_ptr<tensorflow::TensorHandle, void (*)(tensorflow::TensorHandle*)>;

// The arguments as Python encodes them, in sequence: type, whether it is a variable, rank, dimensions. The context has
// the variables for as long as this lives, by name: in TensorFlow 2.15 only a variable's name leads to it.
class Arguments {
 public:
  explicit Arguments(tensorflow::Device* device) : device_(device), manager_(device->resource_manager()) {}
  ~Arguments() {
    for (const std::string& name : names_) {
      manager_->Delete<tensorflow::Var>(manager_->default_container(), name).IgnoreError();
    }
  }

  tensorflow::Status Read(const int64_t* numbers, int64_t count) {
    for (const int64_t* end = numbers + count; numbers < end;) {
      if (end - numbers < 3 || numbers[2] < 0 || end - numbers < 3 + numbers[2]) {
        return tensorflow::errors::Internal("the arguments of a function cannot be read");
      }
      tensorflow::TensorShape shape;
      TF_RETURN_IF_ERROR(
          tensorflow::TensorShape::BuildTensorShape(absl::MakeConstSpan(numbers + 3, numbers[2]), &shape));
      const auto type = static_cast<tensorflow::DataType>(numbers[0]);
      if (numbers[1]) {
        TF_RETURN_IF_ERROR(AddVariable(type, shape));
      } else {
        values_.push_back({shape, type});
      }
      numbers += 3 + numbers[2];
    }
    return tensorflow::OkStatus();
  }

  const std::vector<tensorflow::ArgShapeAndDType>& values() const { return values_; }
  std::vector<const tensorflow::TensorHandle*> handles() const {
    std::vector<const tensorflow::TensorHandle*> all;
    for (const Released& handle : handles_) all.push_back(handle.get());
    return all;
  }

 private:
  // One of type 0 has no value. Those that look alike share theirs, and pages without writes take no memory.
  tensorflow::Status AddVariable(tensorflow::DataType type, const tensorflow::TensorShape& shape) {
    tensorflow::core::RefCountPtr<tensorflow::Var> variable(
        new tensorflow::Var(type == tensorflow::DT_INVALID ? tensorflow::DT_FLOAT : type));
    if (type != tensorflow::DT_INVALID) {
      const auto key = std::make_pair(type, shape.DebugString());
      auto found = contents_.find(key);
      if (found == contents_.end()) found = contents_.emplace(key, tensorflow::Tensor(type, shape)).first;
      *variable->tensor() = found->second;
      variable->is_initialized = true;
    }
    const std::string name = "tf_ipu_shim_stands_in_" + std::to_string(names_.size());
    TF_RETURN_IF_ERROR(manager_->Create(manager_->default_container(), name, variable.release()));
    names_.push_back(name);
    tensorflow::Tensor handle(tensorflow::DT_RESOURCE, tensorflow::TensorShape());
    handle.scalar<tensorflow::ResourceHandle>()() = tensorflow::MakeResourceHandle(
        manager_->default_container(), name, *device_, tensorflow::TypeIndex::Make<tensorflow::Var>());
    handles_.emplace_back(tensorflow::TensorHandle::CreateLocalHandle(handle),
                          [](tensorflow::TensorHandle* made) { made->Unref(); });
    return tensorflow::OkStatus();
  }

  tensorflow::Device* const device_;
  tensorflow::ResourceMgr* const manager_;
  std::vector<tensorflow::ArgShapeAndDType> values_;
  std::map<std::pair<tensorflow::DataType, std::string>, tensorflow::Tensor> contents_;
  std::vector<std::string> names_;
  std::vector<Released> handles_;
};

// Functions that an eager context has for as long as this lives.
class Added {
 public:
  explicit Added(tensorflow::EagerContext* context) : context_(context) {}
  ~Added() {
    for (const std::string& name : names_) context_->RemoveFunction(name).IgnoreError();
  }
  tensorflow::Status Add(const tensorflow::FunctionDefLibrary& library) {
    for (const tensorflow::FunctionDef& function : library.function()) {
      if (context_->FindFunctionByName(function.signature().name())) continue;
      TF_RETURN_IF_ERROR(context_->AddFunctionDef(function));
      names_.push_back(function.signature().name());
    }
    return tensorflow::OkStatus();
  }

 private:
  tensorflow::EagerContext* const context_;
  std::vector<std::string> names_;
};

tensorflow::Status Form(tensorflow::EagerContext* context, const std::string& function, const Arguments& arguments,
                        std::string* form) {
  const std::vector<const tensorflow::TensorHandle*> handles = arguments.handles();
  const auto ask = [&](int stage) {
    return tensorflow::GetCompilerIr(static_cast<tensorflow::IrExportStage>(stage), context->pflr(), function,
                                     context->HostCPU(), context, arguments.values(), handles,
                                     tensorflow::CompilerArgSource::TENSOR_SPEC);
  };
  const ScopedConversionErrorFilter hidden;
  try {
    auto made = ask(serialized);
    if (made.ok() && made->rfind(kText, 0) == 0) {
      serialized = kSerializedLater;
      made = ask(serialized);
    }
    if (!made.ok()) return made.status();
    *form = std::move(*made);
    return tensorflow::OkStatus();
  } catch (const std::exception& error) {
    return ConversionError(error);
  }
}

tensorflow::Status CompilerIr(tensorflow::EagerContext* context, const char* library, int64_t size,
                              const std::string& function, const int64_t* arguments, int64_t count, std::string* form) {
  tensorflow::FunctionDefLibrary functions;
  if (!functions.ParseFromArray(library, static_cast<int>(size))) {
    return tensorflow::errors::Internal("not a function library");
  }
  Added added(context);
  TF_RETURN_IF_ERROR(added.Add(functions));
  Arguments read(context->HostCPU());
  TF_RETURN_IF_ERROR(read.Read(arguments, count));
  return Form(context, function, read, form);
}

}  // namespace
}  // namespace tf_ipu_shim

extern "C" {

// Returns the HLO of a function: a serialised HloModuleProto of `*form_size` bytes, which live until the next call on
// the same thread. If `*fails`, returns the error's message instead. No other thread may use the eager context
// `context` meanwhile.
const char* ipu_compiler_ir(void* context, const char* library, int64_t size, const char* function,
                            const int64_t* arguments, int64_t count, int64_t* form_size, int32_t* fails) {
  thread_local std::string kept;
  auto* const eager = tensorflow::ContextFromInterface(tensorflow::unwrap(static_cast<TFE_Context*>(context)));
  const tensorflow::Status status =
      tf_ipu_shim::CompilerIr(eager, library, size, function, arguments, count, &kept);
  if (!status.ok()) kept = std::string(status.message());
  *fails = !status.ok();
  *form_size = static_cast<int64_t>(kept.size());
  return kept.data();
}

}  // extern "C"
