// Filters lines on which no user can act out of TensorFlow's log, such as XLA's notice of its first compilation.
#include "process/log_noise.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/public/version.h"
#include "tf_private/compilation_announced.h"
#include "tsl/platform/logging.h"

#if ABSL_LTS_RELEASE_VERSION >= 20250814  // TensorFlow 2.21, whose log is Abseil's
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#include "tf_private/absl_initialized.h"
#endif

namespace tf_ipu_shim {
namespace {

// "Compiled cluster using XLA!", once a process, ignores TF_CPP_MIN_LOG_LEVEL on 2.15.1. The driver's log has a line
// for each program, also for those that XLA does not compile.
void SuppressCompilationNotice() {
  if (&compilation_announced != nullptr) absl::call_once(compilation_announced, [] {});
}

// An op that an XLA program cannot have, with XLA's own text (TF_DUMP_GRAPH_PREFIX, dummy_file_name).
constexpr absl::string_view kFailed = "OP_REQUIRES failed at ";
// What XLA would do to a TensorArray that grows: such programs run by TensorFlow's kernels.
constexpr absl::string_view kIgnored = "Warning: TensorListSetItem: ignoring set item ";

thread_local int hides_conversion_errors = 0;

[[maybe_unused]] bool IsConversionError(absl::string_view line) {
  return hides_conversion_errors > 0 && (absl::StartsWith(line, kFailed) || absl::StartsWith(line, kIgnored));
}

}  // namespace

ScopedConversionErrorFilter::ScopedConversionErrorFilter() { ++hides_conversion_errors; }
ScopedConversionErrorFilter::~ScopedConversionErrorFilter() { --hides_conversion_errors; }

#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION == 15

namespace {

// An error in the log of 2.15 for each stream of XLA's CPU client; 2.21 has it no more. Checked on 2.15.1.
constexpr char kNoise[] = "SetPriority unimplemented for this stream.";

bool IsNoise(const std::string& line) { return line == kNoise || IsConversionError(line); }

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

#elif ABSL_LTS_RELEASE_VERSION >= 20250814

namespace {

// Writes to stderr what Abseil would write there, except the noise. Abseil itself writes fatal errors, with their
// stack.
class FilteredStderrSink : public absl::LogSink {
 public:
  void Send(const absl::LogEntry& entry) override {
    if (entry.log_severity() == absl::LogSeverity::kFatal || IsConversionError(entry.text_message())) return;
    const absl::string_view line = entry.text_message_with_prefix_and_newline();
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  void Flush() override { std::fflush(stderr); }
};

}  // namespace

void FilterLogNoise() {
  SuppressCompilationNotice();
  static std::once_flag filtered;
  std::call_once(filtered, [] {
    absl::log_internal::SetInitialized();  // Abseil obeys the threshold only once its log is initialized
    absl::SetStderrThreshold(absl::LogSeverityAtLeast::kFatal);
    absl::AddLogSink(new FilteredStderrSink);
  });
}

#else

void FilterLogNoise() { SuppressCompilationNotice(); }

#endif

}  // namespace tf_ipu_shim
