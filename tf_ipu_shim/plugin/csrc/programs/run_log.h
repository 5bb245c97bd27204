// The file beside a program's profile that gets a line for each run: microseconds of its start and its end since 1970.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "protocol/program_messages.h"

namespace tf_ipu_shim {

class RunLog {
 public:
  RunLog() = default;

  // Takes the file and the number of runs out of a message. Before the first run.
  void Take(CompilationMessage* compilation);

  // When a run starts; 0 where it gets no line.
  int64_t StartTime() const;
  // After a run. That its line cannot be written stops nothing.
  void Add(int64_t start_micros);

 private:
  std::string path_;  // empty where runs get no lines
  std::atomic<int64_t> left_{0};
};

}  // namespace tf_ipu_shim
