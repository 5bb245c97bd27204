// Stores trace events until they are fetched, and creates the load and transfer events of engines.
#include "process/trace.h"

#include <algorithm>
#include <chrono>

namespace tf_ipu_shim {
namespace {

struct EventStore {
  std::mutex mutex;
  std::vector<std::string> events;
};

EventStore& Store() {
  static auto* const store = new EventStore;
  return *store;
}

}  // namespace

std::atomic<bool> host_reads_traced{false};

int64_t NowMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

void RecordEvent(const TraceEvent& event, int64_t micros, std::optional<int64_t> compile_micros) {
  TraceEventTime time;
  time.timestamp = static_cast<double>(micros) / 1e6;
  if (compile_micros.has_value()) time.compile_end.emplace().duration = std::max<int64_t>(*compile_micros, 0);
  std::string bytes = event.serialized;
  FieldWriter writer(&bytes);
  TraceEventTime::Fields(time, writer);
  EventStore& store = Store();
  std::lock_guard<std::mutex> lock(store.mutex);
  store.events.push_back(std::move(bytes));
}

std::vector<std::string> TakeEvents() {
  EventStore& store = Store();
  std::vector<std::string> taken;
  std::lock_guard<std::mutex> lock(store.mutex);
  taken.swap(store.events);
  return taken;
}

EngineTrace& EngineTraceOf(int ordinal) {
  static auto* const traces = new EngineTrace[kMaxDevices];
  return traces[ordinal];
}

void EngineTrace::OnProgramStart(const std::shared_ptr<const TracedEvents>& events) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (loaded_ == events) written_.clear();
}

void EngineTrace::Load(const std::shared_ptr<const TracedEvents>& events, const Buffers& variables, int64_t micros) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool changed = loaded_ != events;
  if (changed) {
    Unload(micros);
    loaded_ = events;
    RecordEvent(events->transfers->load_engine, micros);
  }
  if (!variables.empty() && (changed || !on_device_ || variables_ != variables)) {
    RecordEvent(events->transfers->host_to_device, micros);
  }
}

void EngineTrace::OnProgramEnd(const std::shared_ptr<const TracedEvents>& events, Buffers variables, Buffers written,
                               int64_t micros) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t run = events->executed++;
  TraceEvent execute = events->execute;
  // Later bytes of a message are merged into it.
  if (run == 0 || (events->report_every > 0 && run % events->report_every == 0)) {
    execute.serialized += events->execution_report.value;
  }
  RecordEvent(execute, micros);
  if (loaded_ != events) return;  // another program was loaded while this one ran
  on_device_ = true;
  variables_ = std::move(variables);
  written_ = std::move(written);
  if (!written_.empty()) host_reads_traced.store(true, std::memory_order_relaxed);
}

void EngineTrace::OnHostRead(const void* buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(written_.begin(), written_.end(), buffer) != written_.end()) Unload(NowMicros());
}

void EngineTrace::Unload(int64_t micros) {
  if (on_device_ && !written_.empty()) RecordEvent(loaded_->transfers->device_to_host, micros);
  on_device_ = false;
  variables_.clear();
  written_.clear();
}

void EngineTrace::Reset() {
  std::lock_guard<std::mutex> lock(mutex_);
  loaded_.reset();
  on_device_ = false;
  variables_.clear();
  written_.clear();
}

void ResetTrace() {
  host_reads_traced.store(false, std::memory_order_relaxed);
  for (int ordinal = 0; ordinal < kMaxDevices; ++ordinal) EngineTraceOf(ordinal).Reset();
  TakeEvents();
}

}  // namespace tf_ipu_shim
