// Declares the TensorFlow function behind `experimental_get_compiler_ir`, which returns a function's HLO.
#pragma once

#include <string>

#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow {

// TensorFlow's wheels export the symbol, but contain no header that declares it
// (tensorflow/compiler/jit/get_compiler_ir.h). Checked on 2.15.1 and 2.21.0; `check.cc` asks for the form of a function
// whose arguments have two shapes.
enum class IrExportStage : int;

struct ArgShapeAndDType {
  TensorShape shape;
  DataType dtype;
};

enum class CompilerArgSource { TENSOR_SPEC, CONCRETE_INPUT };

StatusOr<std::string> GetCompilerIr(IrExportStage stage, ProcessFunctionLibraryRuntime* pflr,
                                    absl::string_view func_name, Device* dev, EagerContext* context,
                                    absl::Span<const ArgShapeAndDType> input_arg_shape_and_dtype,
                                    absl::Span<const TensorHandle* const> input_handles,
                                    CompilerArgSource compiler_arg_source);

}  // namespace tensorflow
