// Declares the function that finds which arguments XLA must know when it compiles.
#pragma once

#include <vector>

#include "tensorflow/core/common_runtime/function.h"

namespace tensorflow {

// TensorFlow exports it; its header includes MLIR headers that the wheel leaves out. Checked on 2.15.1 and 2.21.0.
Status GetBodyAndConstantsAndResources(FunctionLibraryRuntime* runtime, const NameAttrList& function,
                                       const FunctionBody** body, std::vector<int>* constants,
                                       std::vector<int>* resources);

}  // namespace tensorflow
