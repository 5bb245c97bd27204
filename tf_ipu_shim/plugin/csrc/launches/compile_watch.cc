// Tracks the XLA compilation of a program's launches, for trace events and the progress bar.
#include "launches/compile_watch.h"

#include <cstdio>
#include <ctime>
#include <exception>

#include "process/trace.h"

namespace tf_ipu_shim {
namespace {

constexpr char kCompiled[] = "Compiled";  // the first word of a log line's message
constexpr int64_t kShownRest = 10000;     // microseconds that the log has as 0.01 s
constexpr int64_t kShownRun = 1000000;

struct WatchedLaunches {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<CompileWatch>> by_function;
};

WatchedLaunches& Watched() {
  static auto* const watched = new WatchedLaunches;
  return *watched;
}

// As TensorFlow's log writes it.
std::string LogTime() {
  const int64_t now = NowMicros();
  const std::time_t seconds = now / 1000000;
  std::tm local = {};
  char text[64];
  if (localtime_r(&seconds, &local) == nullptr) return "";
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text + length, sizeof(text) - length, ".%06d", static_cast<int>(now % 1000000));
  return text;
}

thread_local LaunchScope* running_launch = nullptr;  // that is not known to be compiled yet

}  // namespace

std::atomic<int> compile_watches{0};

std::shared_ptr<CompileWatch> CompileWatch::Begin(const std::string& module, const std::vector<std::string>& launches,
                                                  bool show_bar, const std::string& log_line, int64_t start_micros) {
  std::shared_ptr<CompileWatch> watch(new CompileWatch(module, show_bar, log_line, start_micros));
  for (const std::string& launch : launches) watch->compiled_[launch] = false;
  watch->end_micros_ = NowMicros();
  watch->lowering_micros_ = watch->compile_micros_ = watch->end_micros_ - start_micros;
  {
    std::lock_guard<std::mutex> lock(Watched().mutex);
    for (const std::string& launch : launches) Watched().by_function[launch] = watch;
  }
  ++compile_watches;
  return watch;
}

CompileWatch::~CompileWatch() {
  --compile_watches;
  std::lock_guard<std::mutex> lock(Watched().mutex);
  for (const auto& launch : compiled_) Watched().by_function.erase(launch.first);
}

int CompileWatch::Done() const {
  int done = 1;
  for (const auto& launch : compiled_) done += launch.second;
  return done;
}

void CompileWatch::ShowBar() {
  std::lock_guard<std::mutex> lock(mutex_);
  run_micros_ = NowMicros();
  if (!show_bar_) return;
  show_bar_ = false;
  try {
    bar_ = std::make_unique<ProgressBar>(module_, start_micros_, static_cast<int>(compiled_.size()) + 1, Done());
  } catch (const std::exception&) {
    // The system cannot start a thread: the program compiles without a progress bar.
  }
}

void CompileWatch::EndBar(bool succeeded) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bar_ != nullptr && succeeded) bar_->Finish();
  bar_.reset();
  if (succeeded) return;
  for (auto& launch : compiled_) launch.second = false;  // a launch that failed may not have been compiled
}

// A launch that runs again shows that the program is in a loop whose launches are all compiled.
void CompileWatch::LaunchBegins(const std::string& function) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (compiled_[function]) LogCompilation();
}

void CompileWatch::LaunchCompiled(const std::string& function, int64_t begin_micros) {
  std::lock_guard<std::mutex> lock(mutex_);
  bool& compiled = compiled_[function];
  if (compiled) return;
  compiled = true;
  end_micros_ = NowMicros();
  compile_micros_ += end_micros_ - begin_micros;
  const bool all = Done() > static_cast<int>(compiled_.size());
  if (bar_ != nullptr) bar_->SetDone(Done());
  if (bar_ != nullptr && all) {
    bar_->Finish();
    bar_.reset();
  }
  if (all) LogCompilation();
}

void CompileWatch::LogCompilation() {
  if (logged_micros_ >= 0) return;
  logged_micros_ = compile_micros_;
  WriteLine(log_line_, "in", compile_micros_);
}

void CompileWatch::LogRun() {
  std::lock_guard<std::mutex> lock(mutex_);
  LogCompilation();  // unless it is in the log already
  const int64_t rest = compile_micros_ - logged_micros_;
  if (rest >= kShownRest) WriteLine(log_line_ + ": the rest", "in", rest);
  const int64_t run = NowMicros() - run_micros_ - (compile_micros_ - lowering_micros_);
  const size_t verb = log_line_.find(kCompiled);
  if (run < kShownRun || verb == std::string::npos) return;
  WriteLine(std::string(log_line_).replace(verb, sizeof(kCompiled) - 1, "First run of"), "took", run);
}

void CompileWatch::WriteLine(const std::string& subject, const char* verb, int64_t micros) const {
  if (log_line_.empty()) return;
  // In one call, so that lines of other threads are not mixed with it.
  std::fprintf(stderr, "%s: I %s %s %.2f s\n", LogTime().c_str(), subject.c_str(), verb,
               static_cast<double>(micros) / 1e6);
}

int64_t CompileWatch::compile_micros() {
  std::lock_guard<std::mutex> lock(mutex_);
  return compile_micros_;
}

int64_t CompileWatch::end_micros() {
  std::lock_guard<std::mutex> lock(mutex_);
  return end_micros_;
}

void LaunchScope::Begin(const tensorflow::OpKernel* kernel) {
  if (kernel->def().op() != "XlaLaunch") return;
  const auto function = kernel->def().attr().find("function");
  if (function == kernel->def().attr().end()) return;
  {
    std::lock_guard<std::mutex> lock(Watched().mutex);
    const auto found = Watched().by_function.find(function->second.func().name());
    if (found != Watched().by_function.end()) watch_ = found->second.lock();
  }
  if (watch_ == nullptr) return;
  function_ = function->second.func().name();
  watch_->LaunchBegins(function_);
  begin_micros_ = NowMicros();
  outer_ = running_launch;
  running_launch = this;
}

void LaunchScope::End() {
  running_launch = outer_;
  watch_->LaunchCompiled(function_, begin_micros_);
}

void LaunchScope::OnAllocation() {
  LaunchScope* const launch = running_launch;
  if (launch == nullptr) return;
  running_launch = nullptr;
  launch->watch_->LaunchCompiled(launch->function_, launch->begin_micros_);
}

}  // namespace tf_ipu_shim
