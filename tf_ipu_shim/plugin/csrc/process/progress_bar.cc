// Draws the compilation progress bar on stderr.
#include "process/progress_bar.h"

#include <chrono>
#include <cstdio>

#include "process/trace.h"

namespace tf_ipu_shim {
namespace {

constexpr int kBarWidth = 50;

std::string FormatDuration(int64_t micros) {
  const int64_t tenths = micros / 100000;
  char text[48];
  std::snprintf(text, sizeof(text), "%02lld:%02lld:%02lld.%lld", static_cast<long long>(tenths / 36000),
                static_cast<long long>(tenths / 600 % 60), static_cast<long long>(tenths / 10 % 60),
                static_cast<long long>(tenths % 10));
  return text;
}

}  // namespace

ProgressBar::ProgressBar(const std::string& module, int64_t start_micros, int steps, int done)
    : start_micros_(start_micros), steps_(steps), done_(done) {
  std::fprintf(stderr, "Compiling module %s:\n", module.c_str());
  thread_ = std::thread([this] { Run(); });
}

ProgressBar::~ProgressBar() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ProgressBar::SetDone(int done) {
  std::lock_guard<std::mutex> lock(mutex_);
  done_ = done;
}

void ProgressBar::Finish() {
  std::lock_guard<std::mutex> lock(mutex_);
  finished_ = true;
}

void ProgressBar::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    Draw();
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
  Draw();
  std::fputc('\n', stderr);
}

void ProgressBar::Draw() {
  const int percent = finished_ ? 100 : 100 * done_ / steps_;
  const int filled = kBarWidth * percent / 100;
  // Clears the line, and returns to its beginning so that the next drawing covers this one.
  std::string line = "\33[2K[" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "] " +
                     std::to_string(percent) + "% " + (finished_ ? "Compilation Finished" : "Step: Graph Compilation") +
                     " [Elapsed: " + FormatDuration(NowMicros() - start_micros_) + "]";
  if (!ended_) line += "\r";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace tf_ipu_shim
