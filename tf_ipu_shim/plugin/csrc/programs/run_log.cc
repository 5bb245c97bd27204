// Appends a line for each run of a program to the file next to its profile.
#include "programs/run_log.h"

#include <cstdio>
#include <utility>

#include "process/trace.h"

namespace tf_ipu_shim {

void RunLog::Take(CompilationMessage* compilation) {
  path_ = std::move(compilation->run_log.value);
  left_ = compilation->logged_runs;
}

int64_t RunLog::StartTime() const {
  return path_.empty() || left_.load(std::memory_order_relaxed) <= 0 ? 0 : NowMicros();
}

// Each line is written at once, so that readers of the file see only whole lines.
void RunLog::Add(int64_t start_micros) {
  if (path_.empty() || left_.fetch_sub(1) <= 0) return;
  const std::string line = std::to_string(start_micros) + " " + std::to_string(NowMicros()) + "\n";
  if (std::FILE* const file = std::fopen(path_.c_str(), "a")) {
    std::fwrite(line.data(), 1, line.size(), file);
    std::fclose(file);
  }
}

}  // namespace tf_ipu_shim
