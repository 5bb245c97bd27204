// Filters lines out of TensorFlow's log that every XLA run prints and no user can act on.
#include "process/log_noise.h"

#include <string>

#include "tensorflow/core/public/version.h"
#include "tf_private/compilation_announced.h"
#include "tsl/platform/logging.h"

namespace tf_ipu_shim {
namespace {

// "Compiled cluster using XLA!", once a process, ignores TF_CPP_MIN_LOG_LEVEL on 2.15.1. The driver's log has a line
// for each program, also for those that XLA does not compile.
void SuppressCompilationNotice() {
  if (&compilation_announced != nullptr) absl::call_once(compilation_announced, [] {});
}

thread_local int hides_conversion_errors = 0;

}  // namespace

ScopedConversionErrorFilter::ScopedConversionErrorFilter() { ++hides_conversion_errors; }
ScopedConversionErrorFilter::~ScopedConversionErrorFilter() { --hides_conversion_errors; }

#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION == 15

namespace {

// An error in the log of 2.15 for each stream of XLA's CPU client; 2.21 has it no more. Checked on 2.15.1.
constexpr char kNoise[] = "SetPriority unimplemented for this stream.";
// An op that an XLA program cannot have, with XLA's own text (TF_DUMP_GRAPH_PREFIX, dummy_file_name).
constexpr char kFailed[] = "OP_REQUIRES failed at ";

bool IsNoise(const std::string& line) {
  return line == kNoise || (hides_conversion_errors > 0 && line.rfind(kFailed, 0) == 0);
}

class NoiseFilterSink : public tsl::TFLogSink {
 public:
  explicit NoiseFilterSink(tsl::TFLogSink* shown) : shown_(shown) {}
  void Send(const tsl::TFLogEntry& entry) override {
    if (!IsNoise(entry.ToString())) shown_->Send(entry);
  }
  void WaitTillSent() override { shown_->WaitTillSent(); }

 private:
  tsl::TFLogSink* const shown_;
};

}  // namespace

void FilterLogNoise() {
  SuppressCompilationNotice();
  for (tsl::TFLogSink* sink : tsl::TFGetLogSinks()) {
    if (dynamic_cast<tsl::TFDefaultLogSink*>(sink) == nullptr) continue;
    tsl::TFRemoveLogSink(sink);  // lines that come before the next one are kept for it
    tsl::TFAddLogSink(new NoiseFilterSink(sink));
  }
}

#else

void FilterLogNoise() { SuppressCompilationNotice(); }

#endif

}  // namespace tf_ipu_shim
