// The run log next to a program's profile: one line per run, with its start and end in microseconds since 1970.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "protocol/program_messages.h"

namespace tf_ipu_shim {

class RunLog {
 public:
  RunLog() = default;

  // Takes the file name and the number of runs from a message, before the first run.
  void Take(CompilationMessage* compilation);

  // The start time of a run, or 0 if the run is not logged.
  int64_t StartTime() const;
  // Logs a finished run. A failure to write the line is ignored.
  void Add(int64_t start_micros);

 private:
  std::string path_;  // empty where runs get no lines
  std::atomic<int64_t> left_{0};
};

}  // namespace tf_ipu_shim
