// Lines of TensorFlow's log that every run with XLA would have, and that nobody can act on.
#include "log_noise.h"

#include <string>

#include "tensorflow/core/public/version.h"
#include "tsl/platform/logging.h"

namespace tf_ipu_shim {

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
  for (tsl::TFLogSink* sink : tsl::TFGetLogSinks()) {
    if (dynamic_cast<tsl::TFDefaultLogSink*>(sink) == nullptr) continue;
    tsl::TFRemoveLogSink(sink);  // lines that come before the next one are kept for it
    tsl::TFAddLogSink(new WithoutNoise(sink));
  }
}

#else

void LeaveNoiseOutOfTheLog() {}

#endif

}  // namespace tf_ipu_shim
