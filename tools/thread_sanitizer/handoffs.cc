// Tells ThreadSanitizer in which order TensorFlow's code synchronizes threads, because TensorFlow's wheels are built
// without it. Otherwise nsync mutexes, closures in thread pools and reference counts are invisible, and all data that
// they protect is reported as a race. This library is loaded before TensorFlow (see `make tsan`), whose libraries then
// call it. For TensorFlow 2.15.1.
#include <dlfcn.h>

#include <functional>
#include <utility>

extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);

namespace {

// TensorFlow's function of a name. Python loads its libraries for themselves, where RTLD_NEXT does not look.
template <typename Function>
Function* Stock(const char* name) {
  static void* const library = dlopen("libtensorflow_framework.so.2", RTLD_NOLOAD | RTLD_LAZY);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

namespace tsl {

class mutex {
 public:
  void lock();
  bool try_lock();
  void unlock();
  void lock_shared();
  bool try_lock_shared();
  void unlock_shared();
};

void mutex::lock() {
  static auto* const stock = Stock<void(mutex*)>("_ZN3tsl5mutex4lockEv");
  stock(this);
  __tsan_acquire(this);
}

bool mutex::try_lock() {
  static auto* const stock = Stock<bool(mutex*)>("_ZN3tsl5mutex8try_lockEv");
  const bool locked = stock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void mutex::unlock() {
  static auto* const stock = Stock<void(mutex*)>("_ZN3tsl5mutex6unlockEv");
  __tsan_release(this);
  stock(this);
}

void mutex::lock_shared() {
  static auto* const stock = Stock<void(mutex*)>("_ZN3tsl5mutex11lock_sharedEv");
  stock(this);
  __tsan_acquire(this);
}

bool mutex::try_lock_shared() {
  static auto* const stock = Stock<bool(mutex*)>("_ZN3tsl5mutex15try_lock_sharedEv");
  const bool locked = stock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void mutex::unlock_shared() {
  static auto* const stock = Stock<void(mutex*)>("_ZN3tsl5mutex13unlock_sharedEv");
  __tsan_release(this);
  stock(this);
}

class mutex_lock;  // its first field is the mutex

class condition_variable {
 public:
  void wait(mutex_lock& lock);
};

void condition_variable::wait(mutex_lock& lock) {
  static auto* const stock =
      Stock<void(condition_variable*, mutex_lock&)>("_ZN3tsl18condition_variable4waitERNS_10mutex_lockE");
  void* const locked = *reinterpret_cast<void**>(&lock);
  __tsan_release(locked);
  stock(this, lock);
  __tsan_acquire(locked);
}

namespace thread {

class ThreadPool {
 public:
  void Schedule(std::function<void()> closure);
};

void ThreadPool::Schedule(std::function<void()> closure) {
  static auto* const stock =
      Stock<void(ThreadPool*, std::function<void()>)>("_ZN3tsl6thread10ThreadPool8ScheduleESt8functionIFvvEE");
  auto* const handed = new char;  // never freed: another one at its address would be ordered with it
  __tsan_release(handed);
  stock(this, [handed, closure = std::move(closure)] {
    __tsan_acquire(handed);
    closure();
  });
}

}  // namespace thread
}  // namespace tsl

namespace tensorflow {

class Tensor {
 public:
  ~Tensor();
  void* data() const;
  bool RefCountIsOne() const;
};

// Counts a reference down (`RefCounted::Unref`: fetch_sub, acq_rel). This is how a kernel's operands go when it has ended.
Tensor::~Tensor() {
  static auto* const stock = Stock<void(Tensor*)>("_ZN10tensorflow6TensorD1Ev");
  static auto* const memory = Stock<void*(const Tensor*)>("_ZNK10tensorflow6Tensor4dataEv");
  if (void* const held = memory(this)) __tsan_release(held);
  stock(this);
}

// Asks the count (load, acquire). The holder of the only reference writes where others have read.
bool Tensor::RefCountIsOne() const {
  static auto* const stock = Stock<bool(const Tensor*)>("_ZNK10tensorflow6Tensor13RefCountIsOneEv");
  static auto* const memory = Stock<void*(const Tensor*)>("_ZNK10tensorflow6Tensor4dataEv");
  const bool alone = stock(this);
  if (alone) __tsan_acquire(memory(this));
  return alone;
}

}  // namespace tensorflow
