// Calls from ops into Python: one function, called by name with a serialized request, returns a serialized answer.
#pragma once

#include <cstdint>
#include <string>

#include "tensorflow/core/platform/status.h"
#include "protocol/wire.h"

namespace tf_ipu_shim {

// The result of a call into Python: the answer, or the error message.
struct PythonCall {
  std::string answer;
};

// Returns 0, a TensorFlow status code with the message in `call->answer`, or `kKeyboardInterrupt`. Never lets an exception through.
using PythonFunction = int32_t (*)(PythonCall* call, const char* name, const char* request, int64_t size);

void SetPythonFunction(PythonFunction function);
bool HasPythonFunction();

// Calls the Python function that is installed under `name`, with serialised messages.
tensorflow::Status CallPythonWithBytes(const char* name, const std::string& request, std::string* answer);

// Makes one of the calls of `protocol/driver_messages.h`.
template <class Call>
tensorflow::Status CallPython(const typename Call::Request& request, typename Call::Answer* answer) {
  std::string sent, received;
  TF_RETURN_IF_ERROR(WriteMessage(request, &sent));
  TF_RETURN_IF_ERROR(CallPythonWithBytes(Call::kHandler, sent, &received));
  return ReadMessage(received, answer);
}

}  // namespace tf_ipu_shim
