// Installs the SIGINT handler and converts Ctrl-C into errors of running ops.
#include "process/interrupts.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "launches/compile_ahead.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

constexpr int64_t kGraceMillis = 100;
constexpr char kInterruptedMessage[] = " was interrupted by Ctrl-C. The program has ended; run it again.";

// Earlier signal handlers are never freed: a handler may run in any thread at any time.
std::atomic<const struct sigaction*> handled_before{nullptr};
std::atomic<void (*)()> set_interrupt{nullptr};  // PyErr_SetInterrupt
std::atomic<bool> knows_main_thread{false};
pthread_t main_thread;

int64_t NowMillis() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);  // may be called in a handler
  return std::max<int64_t>(1, int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000);
}

void OnInterrupt(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  int64_t none = 0;
  interrupted_at.compare_exchange_strong(none, NowMillis());
  errno = error;
  const struct sigaction* before = handled_before.load();
  if ((before->sa_flags & SA_SIGINFO) != 0) {
    before->sa_sigaction(signal, info, context);
  } else {
    before->sa_handler(signal);
  }
}

}  // namespace

std::atomic<int64_t> interrupted_at{0};

bool IsOverdue(int64_t since) { return NowMillis() - since >= kGraceMillis; }

tensorflow::Status InterruptedError(const std::string& where) {
  return tensorflow::errors::Cancelled(where, kInterruptedMessage);
}

bool IsInterruptedError(const tensorflow::Status& error) {
  return std::string(error.message()).find(kInterruptedMessage) != std::string::npos;
}

tensorflow::Status CheckPythonInterrupt() {
  if (interrupted_at.load() == 0 || !knows_main_thread.load() || !pthread_equal(pthread_self(), main_thread)) {
    return tensorflow::OkStatus();
  }
  return InterruptedError("The program");
}

tensorflow::Status RaiseInterruptAgain(const std::string& where) {
  if (const auto again = set_interrupt.load()) {
    interrupted_at.store(std::max<int64_t>(1, NowMillis() - kGraceMillis));
    again();
  }
  return InterruptedError(where);
}

}  // namespace tf_ipu_shim

extern "C" {

// Has Ctrl-C noted here before Python's handler has it; called by Python's main thread, with the address of
// PyErr_SetInterrupt. Python puts its own handler back whenever a script sets one, so that it is called again.
void ipu_watch_interrupts(void (*set_interrupt)()) {
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  const bool with_info = (now.sa_flags & SA_SIGINFO) != 0;
  if (with_info && now.sa_sigaction == tf_ipu_shim::OnInterrupt) return;
  if (!with_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  tf_ipu_shim::set_interrupt = set_interrupt;
  tf_ipu_shim::main_thread = pthread_self();
  tf_ipu_shim::knows_main_thread = true;
  tf_ipu_shim::handled_before.store(new struct sigaction(now));
  struct sigaction ours = now;
  ours.sa_sigaction = tf_ipu_shim::OnInterrupt;
  ours.sa_flags |= SA_SIGINFO;
  sigaction(SIGINT, &ours, nullptr);
}

// Python raises KeyboardInterrupt now.
void ipu_interrupt_answered() { tf_ipu_shim::interrupted_at = 0; }

int32_t ipu_interrupted() { return tf_ipu_shim::Interrupted() ? 1 : 0; }

int32_t ipu_compilations_left_behind() { return tf_ipu_shim::PendingCompilations(); }

}  // extern "C"
