// Records trace events of the devices, and stores them until the host fetches them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/arena.h"
#include "protocol/program_messages.h"

namespace tf_ipu_shim {

// Microseconds since the epoch, as trace events count time (in seconds).
int64_t NowMicros();

// Keeps an event that happened at `micros`. `compile_micros`: how long a compilation took, for a COMPILE_END.
void RecordEvent(const TraceEvent& event, int64_t micros, std::optional<int64_t> compile_micros = std::nullopt);

// Removes and returns all stored events, oldest first.
std::vector<std::string> TakeEvents();

// The events of a program and its run count, which the trace of its device updates and guards.
struct TracedEvents : ProgramEvents {
  explicit TracedEvents(ProgramEvents events) : ProgramEvents(std::move(events)) {}
  mutable int64_t executed = 0;
};

// Tracks which engine and variables are on a device, as Graphcore's executor does. Another engine is loaded first, and
// missing variables are copied to the device. They are copied back when the host reads one.
class EngineTrace {
 public:
  using Buffers = std::vector<const void*>;

  // Called when a step starts this program. Host copies in the step do not count as reads of variables that the last
  // run wrote, even if they share memory.
  void OnProgramStart(const std::shared_ptr<const TracedEvents>& events);

  // Called before a run if transfer events are enabled: `variables` holds the buffers of `events->variables`.
  void Load(const std::shared_ptr<const TracedEvents>& events, const Buffers& variables, int64_t micros);

  // After it.
  void OnProgramEnd(const std::shared_ptr<const TracedEvents>& events, Buffers variables, Buffers written,
                    int64_t micros);

  void OnHostRead(const void* buffer);
  void Reset();

 private:
  void Unload(int64_t micros);

  std::mutex mutex_;
  std::shared_ptr<const TracedEvents> loaded_;
  bool on_device_ = false;
  Buffers variables_, written_;
};

EngineTrace& EngineTraceOf(int ordinal);

// Whether copies to the host may need an event; the only cost of a copy if not.
extern std::atomic<bool> host_reads_traced;

// Forgets events and engines, as under a new configuration.
void ResetTrace();

}  // namespace tf_ipu_shim
