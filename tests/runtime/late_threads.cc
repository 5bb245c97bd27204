// Once a script has asked for it, delays what a thread other than the first signals when it hands a call to an op's own
// thread; or delays new threads, and the process's end for twice as long.
//
// The functions are defined by their names in the libraries: TensorFlow's (nsync) and C++'s own.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace {

std::atomic<useconds_t> delay{0};
std::atomic<useconds_t> start_delay{0};

void* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  return found != nullptr ? found : dlsym(dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_LAZY), name);
}

// Whether the code is of ours, or of TensorFlow's worker of one op.
bool hands_over(const void* code) {
  Dl_info place;
  if (dladdr(code, &place) == 0) return false;
  return std::strstr(place.dli_fname, "ipu-plugin") != nullptr ||
         (place.dli_sname != nullptr && std::strstr(place.dli_sname, "BackgroundWorker8Schedule") != nullptr);
}

void signal(const char* name, void* condition, const void* caller) {
  if (delay != 0 && gettid() != getpid() && hands_over(caller)) usleep(delay);
  reinterpret_cast<void (*)(void*)>(next(name))(condition);
}

struct Start {
  void* (*begin)(void*);
  void* argument;
};

void* begin_late(void* start) {
  const Start what = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
  usleep(start_delay);
  return what.begin(what.argument);
}

struct LateEnd {
  ~LateEnd() { usleep(2 * start_delay); }
} late_end;

}  // namespace

extern "C" {

void delay_signals(unsigned microseconds) { delay = microseconds; }
void delay_starts(unsigned microseconds) { start_delay = microseconds; }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*), void* argument) {
  const auto create = reinterpret_cast<decltype(&pthread_create)>(next(__func__));
  if (start_delay == 0) return create(thread, attributes, begin, argument);
  return create(thread, attributes, begin_late, new Start{begin, argument});
}

void _ZN5nsync15nsync_cv_signalEPNS_11nsync_cv_s_E(void* condition) {
  signal(__func__, condition, __builtin_return_address(0));
}
void _ZNSt18condition_variable10notify_oneEv(void* condition) {
  signal(__func__, condition, __builtin_return_address(0));
}
}
