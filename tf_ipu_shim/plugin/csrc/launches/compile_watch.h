// Watches XLA compile a program. XLA compiles each launch when it first runs; the launch then allocates its results.
// So a launch is compiled when, inside its kernel, the first memory is asked for.
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

// How many programs are in their first run. Where there is none, watching costs the check of this number.
extern std::atomic<int> compile_watches;

// From the lowering of a program to the end of its first run.
class CompileWatch : public std::enable_shared_from_this<CompileWatch> {
 public:
  // `launches`: the functions that the program's XLA launches run, each in one program only. `log_line`: written with
  // the time that all took, when they are compiled; empty for none.
  static std::shared_ptr<CompileWatch> Begin(const std::string& module, const std::vector<std::string>& launches,
                                             bool show_bar, const std::string& log_line, int64_t start_micros);
  ~CompileWatch();

  // Around the run. When it ends, all that will be compiled is: a branch that was not taken is not waited for.
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

// Stands around a kernel while it runs.
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

  // Memory is asked for on this thread.
  static void NoteAllocation();

 private:
  void Begin(const tensorflow::OpKernel* kernel);
  void End();

  std::shared_ptr<CompileWatch> watch_;
  std::string function_;
  LaunchScope* outer_ = nullptr;
};

}  // namespace tf_ipu_shim
