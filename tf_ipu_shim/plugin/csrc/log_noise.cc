// Lines of TensorFlow's log that every run with XLA would have, and that nobody can act on.
#include "log_noise.h"

#include <cstdlib>
#include <string>

#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#include "tensorflow/core/public/version.h"
#include "tsl/platform/logging.h"

namespace tf_ipu_shim {
namespace {

// XLA's "Compiled cluster using XLA!" goes through Abseil's log, which does not know TF_CPP_MIN_LOG_LEVEL, on 2.15.1.
void LimitOtherLog() {
  const char* const level = std::getenv("TF_CPP_MIN_LOG_LEVEL");
  if (level == nullptr || level[0] < '1' || level[0] > '3' || level[1] != 0) return;
  const auto least = static_cast<absl::LogSeverityAtLeast>(level[0] - '0');
  // Not the threshold for stderr, which counts only once somebody has called `InitializeLog`.
  if (absl::MinLogLevel() < least) absl::SetMinLogLevel(least);
}

}  // namespace

#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION == 15

namespace {

// An error in the log of 2.15 for each stream of XLA's CPU client; 2.21 has it no more. Checked on 2.15.1.
constexpr char kNoise[] = "SetPriority unimplemented for this stream.";

class WithoutNoise : public tsl::TFLogSink {
 public:
  explicit WithoutNoise(tsl::TFLogSink* shown) : shown_(shown) {}
  void Send(const tsl::TFLogEntry& entry) override {
    if (entry.ToString() != kNoise) shown_->Send(entry);
  }
  void WaitTillSent() override { shown_->WaitTillSent(); }

 private:
  tsl::TFLogSink* const shown_;
};

}  // namespace

void LeaveNoiseOutOfTheLog() {
  LimitOtherLog();
  for (tsl::TFLogSink* sink : tsl::TFGetLogSinks()) {
    if (dynamic_cast<tsl::TFDefaultLogSink*>(sink) == nullptr) continue;
    tsl::TFRemoveLogSink(sink);  // lines that come before the next one are kept for it
    tsl::TFAddLogSink(new WithoutNoise(sink));
  }
}

#else

void LeaveNoiseOutOfTheLog() { LimitOtherLog(); }

#endif

}  // namespace tf_ipu_shim
