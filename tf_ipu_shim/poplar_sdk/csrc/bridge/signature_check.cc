// Tries metadata functions in a child process, because C functions do not tell their parameters.
#include "signature_check.hpp"

#include "child_process.hpp"
#include "failure.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>

namespace tf_ipu_shim {
namespace {

constexpr rlim_t processor_seconds = 10, more_memory = rlim_t{1} << 30;
constexpr unsigned wall_seconds = 60;

bool isSound(const std::vector<std::int64_t>& values) {
  return values.size() <= values.capacity() && values.capacity() < (std::size_t{1} << 32) &&
         (values.capacity() == 0) == (values.data() == nullptr);
}

bool isSound(const std::map<std::int64_t, std::int64_t>& pairs) {
  std::size_t count = 0;
  for (auto pair = pairs.begin(); pair != pairs.end() && count <= pairs.size(); ++pair) ++count;
  return count == pairs.size();
}

bool isSound(const bool& flag) {
  unsigned char byte = 0;
  std::memcpy(&byte, &flag, 1);
  return byte < 2;
}

bool isSound(const std::uint32_t&) { return true; }

template <class... T>
bool areSound(const Guarded<T>&... arguments) {
  const auto is_whole = [](const auto& bytes, unsigned char mark) {
    return std::all_of(bytes.begin(), bytes.end(), [mark](unsigned char byte) { return byte == mark; });
  };
  return ((is_whole(arguments.before, arguments.untouched) && is_whole(arguments.after, arguments.untouched) &&
           isSound(arguments.value)) && ...);
}

// A function that takes an address for a number of inputs may count to it. One may wait for a lock of another thread,
// which a forked process does not have.
void limitProcess() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more_memory;
  const rlimit processor{processor_seconds, processor_seconds}, memory{bytes, bytes};
  setrlimit(RLIMIT_CPU, &processor);
  setrlimit(RLIMIT_AS, &memory);
  std::signal(SIGALRM, SIG_DFL);
  alarm(wall_seconds);
}

}  // namespace

void checkSignature(const std::string& what, const std::string& expected,
                    const std::function<void(MetadataArguments&)>& call) {
  const auto failure = failureInChild([&] {
    limitProcess();
    auto* const made = new MetadataArguments;  // what is damaged cannot be destroyed
    try {
      call(*made);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return areSound(made->allocating_indices, made->replica_identical_outputs, made->aliases, made->in_place,
                    made->is_elementwise, made->is_stateless, made->is_hashable);
  });
  if (failure)
    throw Failure(Code::Internal, what + (failure->empty() ? " wrote outside its arguments. " : *failure) +
                                      "Its parameters are not those of the library's API level; expected (" + expected +
                                      "). Change them, or custom_op_api_level.");
}

}  // namespace tf_ipu_shim
