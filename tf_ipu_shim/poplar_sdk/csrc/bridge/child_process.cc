// Calls a function in a forked child process and reports how it ends.
#include "child_process.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace tf_ipu_shim {
namespace {

constexpr std::size_t shown_bytes = 2000;
constexpr int returned_false = 1;

// The last lines that a child process printed.
std::string printedBy(int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t begin = size > static_cast<off_t>(shown_bytes) ? size - static_cast<off_t>(shown_bytes) : 0;
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  const ssize_t count = pread(file, text.data(), text.size(), begin);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

[[noreturn]] void runChild(const std::function<bool()>& call, int printed) {
  dup2(printed, STDOUT_FILENO);
  dup2(printed, STDERR_FILENO);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
  bool result = true;
  try {
    result = call();
  } catch (...) {  // the parent's call throws it again
  }
  _exit(result ? 0 : returned_false);
}

}  // namespace

bool isChecked() {
  const char* const value = std::getenv("TF_IPU_SHIM_CHECK_CODELETS");
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

std::optional<std::string> failureInChild(const std::function<bool()>& call) {
  const int printed = memfd_create("child", MFD_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) runChild(call, printed);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string text = child > 0 ? printedBy(printed) : "";
  close(printed);
  if (child < 0) return std::nullopt;  // no process is free: the call in this process tells
  if (WIFSIGNALED(status))
    return std::string(" crashed: ") + strsignal(WTERMSIG(status)) +
           (text.empty() ? ". " : ", after it printed:\n" + text + "\n");
  if (WEXITSTATUS(status) == returned_false) return "";
  return std::nullopt;
}

}  // namespace tf_ipu_shim
