// A separate program, not part of the plugin: `check_main PLUGIN` checks the plugin's assumptions about TensorFlow's
// private symbols, and prints those that are wrong. Its `operator new` is what TensorFlow calls, too: it notes the
// sizes.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr int kKept = 1 << 16;  // as many allocations as may lie between that of a kernel and its constructor's end

struct Allocation {
  const void* address;
  size_t size;
};

Allocation kept[kKept];
unsigned next = 0;

size_t SizeOf(const void* address) {
  for (unsigned i = 0; i < kKept; ++i) {
    const Allocation& one = kept[(next - 1 - i) % kKept];  // the last one at an address counts
    if (one.address == address) return one.size;
  }
  return 0;
}

}  // namespace

void* operator new(size_t size) {
  void* const address = std::malloc(size == 0 ? 1 : size);
  if (address == nullptr) throw std::bad_alloc();
  kept[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % kKept] = {address, size};
  return address;
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete(void* address, size_t) noexcept { std::free(address); }

int main(int, char** arguments) {
  void* const plugin = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  if (plugin == nullptr) return std::printf("it cannot be loaded: %s\n", dlerror()), 1;
  using Check = const char* (*)(size_t (*)(const void*));
  const auto check = reinterpret_cast<Check>(dlsym(plugin, "ipu_check_tensorflow"));
  if (check == nullptr) return std::printf("it has no ipu_check_tensorflow\n"), 1;
  const char* const problem = check(SizeOf);
  if (problem != nullptr) std::printf("%s\n", problem);
  std::fflush(stdout);
  std::_Exit(problem == nullptr ? 0 : 1);  // TensorFlow's threads need no end
}
