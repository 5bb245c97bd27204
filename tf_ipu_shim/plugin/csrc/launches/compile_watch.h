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
  // the time that all took, when they are compiled; empty for none.
  static std::shared_ptr<CompileWatch> Begin(const std::string& module, const std::vector<std::string>& launches,
                                             bool show_bar, const std::string& log_line, int64_t start_micros);
  ~CompileWatch();

  // Called before and after the run. When the run ends, compilation is over: branches not taken are not waited for.
  void ShowBar();
  void EndBar(bool succeeded);
  // After the first run that succeeds.
  void Log();

  void LaunchCompiled(const std::string& function);

  int64_t start_micros() const { return start_micros_; }
  // When the last launch was compiled.
  int64_t end_micros();

 private:
  CompileWatch(const std::string& module, bool show_bar, const std::string& log_line, int64_t start_micros)
      : module_(module), log_line_(log_line), start_micros_(start_micros), show_bar_(show_bar) {}
  int Done() const;  // steps: the lowering, and each launch

  const std::string module_;
  const std::string log_line_;
  const int64_t start_micros_;
  std::mutex mutex_;
  std::map<std::string, bool> compiled_;  // by function
  int64_t end_micros_ = 0;
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
  LaunchScope* outer_ = nullptr;
};

}  // namespace tf_ipu_shim
