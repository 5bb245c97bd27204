// How ops whose state lives in Python reach it: one function, called by name with bytes, answering with bytes.
#pragma once

#include <cstdint>
#include <string>

#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// What the Python side fills in: the answer, or the message of the error.
struct PythonCall {
  std::string answer;
};

// Returns 0, or a TensorFlow status code with the message in `call->answer`. Never lets an exception through.
using PythonFunction = int32_t (*)(PythonCall* call, const char* name, const char* request, int64_t size);

void SetPythonFunction(PythonFunction function);
bool HasPythonFunction();

// Calls the Python function that is installed under `name`.
tensorflow::Status CallPython(const char* name, const std::string& request, std::string* answer);

}  // namespace tf_ipu_shim
