// Lists the C++ declarations of all messages, for the test that compares them with Python's.
#include <string>

#include "protocol/driver_messages.h"
#include "protocol/program_messages.h"

namespace tf_ipu_shim {
namespace {

template <class Message>
void List(std::string* lines) {
  FieldLister lister(Message::kName, lines);
  Message message;
  Message::Fields(message, lister);
}

template <class... Messages>
std::string ListAll() {
  std::string lines;
  (List<Messages>(&lines), ...);
  return lines;
}

template <class... Calls>
std::string ListCalls() {
  std::string lines;
  ((lines += std::string(Calls::kHandler) + " " + Calls::Request::kName + " " + Calls::Answer::kName + "\n"), ...);
  return lines;
}

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

// The fields of all messages, a line `message field number kind` each.
const char* ipu_message_fields() {
  static const auto* const lines =
      new std::string(ListAll<VariableMessage, ArgumentMessage, NodeInputs, PlainOpsMessage, ProgramRequest, ReplicaVariable, TransferEvents,
                              ProgramEvents, CompilationMessage, SentElements, ProgramAnswer, NodeNames, FrameMessage, StackMessage, CompileEndTime, TraceEventTime,
                              Nothing, DeviceQuestion, UseQuestion, DeviceUse, DeviceSize, SeedOrder, SyntheticQuestion, YesOrNo,
                              ConfigureOrder, Configurations, ApplicationArgument, ApplicationMessage, ApplicationStart,
                              ApplicationTensor, ApplicationStarted, ReplicaValues, AllReplicaValues, CompileError, CompileErrorText>());
  return lines->c_str();
}

// The calls of Python's driver, a line `handler request answer` each.
const char* ipu_driver_calls() {
  static const auto* const lines =
      new std::string(ListCalls<AttachCall, ConfigureCall, ResetDevicesCall, ResetSeedCall, ModelUsedCall,
                                ConfigurationCall, NumIpusCall, SyntheticDataCall, StartApplicationCall,
                                GatherInstancesCall, ExplainCompileErrorCall>());
  return lines->c_str();
}

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
