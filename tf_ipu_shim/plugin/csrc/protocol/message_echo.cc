// Reads a message from Python and sends it back, for the tests of the wire format.
#include <string>

#include "protocol/program_messages.h"

namespace tf_ipu_shim {
namespace {

template <class Message>
tensorflow::Status Echo(const std::string& bytes, std::string* echo) {
  Message message;
  TF_RETURN_IF_ERROR(ReadMessage(bytes, &message));
  return WriteMessage(message, echo);
}

}  // namespace
}  // namespace tf_ipu_shim

using namespace tf_ipu_shim;  // NOLINT: the C interface of that namespace

extern "C" {

// Reads a ProgramRequest (`is_answer` 0) or ProgramAnswer and writes it again. Returns the bytes, `*length` of them; or,
// with a length of -1, what was wrong with it. They live until the next call on the same thread.
const char* ipu_echo_message(int32_t is_answer, const char* bytes, int64_t size, int64_t* length) {
  thread_local std::string kept;
  const std::string given(bytes, static_cast<size_t>(size));
  kept.clear();
  const tensorflow::Status status =
      is_answer != 0 ? Echo<ProgramAnswer>(given, &kept) : Echo<ProgramRequest>(given, &kept);
  if (!status.ok()) kept = std::string(status.message());
  *length = status.ok() ? static_cast<int64_t>(kept.size()) : -1;
  return kept.c_str();
}

}  // extern "C"
