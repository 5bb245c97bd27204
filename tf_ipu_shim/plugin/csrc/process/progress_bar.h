// Graphcore's progress bar for the compilation of a program, drawn on stderr.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tf_ipu_shim {

// Draws from construction to destruction, ten times a second, so that the displayed time advances.
class ProgressBar {
 public:
  // `start_micros`: when the compilation began. `steps`: of how many steps it consists, of which `done` are done.
  ProgressBar(const std::string& module, int64_t start_micros, int steps, int done);
  ~ProgressBar();

  void SetDone(int done);
  void Finish();

 private:
  void Run();
  void Draw();  // under the lock

  const int64_t start_micros_;
  const int steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_;
  bool finished_ = false;
  bool ended_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tf_ipu_shim
