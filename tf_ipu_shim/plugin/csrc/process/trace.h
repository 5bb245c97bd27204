// Trace events: what happened on the devices, kept until somebody fetches it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/arena.h"
#include "protocol/program_messages.h"

namespace tf_ipu_shim {

// Microseconds since the epoch, as trace events count time (in seconds).
int64_t NowMicros();

// Keeps an event that happened at `micros`. `compile_micros`: how long a compilation took, for a COMPILE_END.
void RecordEvent(const TraceEvent& event, int64_t micros, std::optional<int64_t> compile_micros = std::nullopt);

// Takes all events that were kept, oldest first.
std::vector<std::string> TakeEvents();

// What of a device's memory is up to date, as Graphcore's executor keeps track of it: an engine is loaded where another
// ran before; its variables go to the device where they are not there, and come back when the host reads one of them.
class EngineTrace {
 public:
  using Buffers = std::vector<const void*>;

  // Where it is known that a step will run this program: what the step sends to the host is no variable that the last
  // run wrote, though its memory may be.
  void Begins(const std::shared_ptr<const ProgramEvents>& events);

  // Before a run, where transfers are wanted: `variables` holds the buffers of `events->variables`.
  void Load(const std::shared_ptr<const ProgramEvents>& events, const Buffers& variables, int64_t micros);

  // After it.
  void Executed(const std::shared_ptr<const ProgramEvents>& events, Buffers variables, Buffers written,
                int64_t micros);

  void HostReads(const void* buffer);
  void Reset();

 private:
  void Unload(int64_t micros);

  std::mutex mutex_;
  std::shared_ptr<const ProgramEvents> loaded_;
  bool on_device_ = false;
  Buffers variables_, written_;
};

EngineTrace& EngineTraceOf(int ordinal);

// Whether a copy to the host may have to be recorded. All that a copy costs otherwise.
extern std::atomic<bool> host_reads_traced;

// Forgets events and engines, as under a new configuration.
void ResetTrace();

}  // namespace tf_ipu_shim
