// Observes XLA compiling a program. XLA compiles each launch at its first run, before the launch allocates its results,
// so the first allocation inside its kernel ends the compilation.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "process/progress_bar.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// The number of programs in their first run. If it is zero, checking it is the only cost.
extern std::atomic<int> compile_watches;

// Observes one program from its lowering to the end of its first run.
class CompileWatch : public std::enable_shared_from_this<CompileWatch> {
 public:
  // `launches`: the functions that the program's XLA launches run, each in one program only. `log_line`: written with
  // the time that their compilation took, as soon as the program runs on; empty for none.
  static std::shared_ptr<CompileWatch> Begin(const std::string& module, const std::vector<std::string>& launches,
                                             bool show_bar, const std::string& log_line, int64_t start_micros);
  ~CompileWatch();

  // Called before and after the run. When the run ends, compilation is over: branches not taken are not waited for.
  void ShowBar();
  void EndBar(bool succeeded);
  // After the first successful run: the launches that it compiled after the log line, and the run's duration.
  void LogRun();

  void LaunchBegins(const std::string& function);
  void LaunchCompiled(const std::string& function, int64_t begin_micros);

  // When the last launch was compiled.
  int64_t end_micros();
  // How long lowering and compilation took, without the runs of other launches between them.
  int64_t compile_micros();

 private:
  CompileWatch(const std::string& module, bool show_bar, const std::string& log_line, int64_t start_micros)
      : module_(module), log_line_(log_line), start_micros_(start_micros), show_bar_(show_bar) {}
  // Under the lock:
  int Done() const;  // steps: the lowering, and each launch
  void LogCompilation();
  void WriteLine(const std::string& subject, const char* verb, int64_t micros) const;

  const std::string module_;
  const std::string log_line_;
  const int64_t start_micros_;
  std::mutex mutex_;
  std::map<std::string, bool> compiled_;  // by function
  int64_t end_micros_ = 0;
  int64_t compile_micros_ = 0;
  int64_t logged_micros_ = -1;  // of the compilation, as the log line has it
  int64_t run_micros_ = 0;      // when the first run began
  int64_t lowering_micros_ = 0;
  bool show_bar_;
  std::unique_ptr<ProgressBar> bar_;
};

// Scope of a running kernel.
class LaunchScope {
 public:
  explicit LaunchScope(const tensorflow::OpKernel* kernel) {
    if (compile_watches.load(std::memory_order_relaxed) != 0) Begin(kernel);
  }
  ~LaunchScope() {
    if (watch_ != nullptr) End();
  }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;

  // Called for each allocation on this thread.
  static void OnAllocation();

 private:
  void Begin(const tensorflow::OpKernel* kernel);
  void End();

  std::shared_ptr<CompileWatch> watch_;
  std::string function_;
  int64_t begin_micros_ = 0;
  LaunchScope* outer_ = nullptr;
};

}  // namespace tf_ipu_shim
