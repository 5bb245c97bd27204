// Calls users' code: its exceptions become errors for TensorFlow, a crash prints a line that names the library.
#include "failure.hpp"

#include "child_process.hpp"

#include <cxxabi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <typeinfo>

namespace tf_ipu_shim {
namespace {

// The line for a signal that ends the process while this thread is in a user's function, or holds what it made.
thread_local const std::string* crash_text = nullptr;

std::map<int, struct sigaction>& earlierHandlers() {
  static auto* handlers = new std::map<int, struct sigaction>;
  return *handlers;
}

void tellOfCrash(int signal) {
  if (crash_text != nullptr && write(STDERR_FILENO, crash_text->data(), crash_text->size()) < 0) crash_text = nullptr;
  sigaction(signal, &earlierHandlers().at(signal), nullptr);
  if (signal == SIGABRT) raise(signal);  // a fault occurs again when this handler returns
}

void listenToCrashes() {
  static const bool listening = [] {
    struct sigaction action = {};
    action.sa_handler = tellOfCrash;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
      sigaction(signal, &action, &earlierHandlers()[signal]);
    return true;
  }();
  (void)listening;
}

}  // namespace

CrashText::CrashText(const std::string& text) : text_(text + "\n"), outer_(crash_text) {
  listenToCrashes();
  crash_text = &text_;
}

CrashText::~CrashText() { crash_text = outer_; }

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

void callUser(const std::string& what, const std::function<void()>& call) {
  const auto returns = [&] { return call(), true; };
  if (const auto failure = isChecked() ? failureInChild(returns) : std::nullopt)
    throw Failure(Code::Internal, what + *failure + "Compile it with -g and run the script in gdb.");
  const CrashText text(what + " crashed. With TF_IPU_SHIM_CHECK_CODELETS=1 that is an error, and the script goes on.");
  try {
    call();
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(Code::Internal, what + " threw " + demangled(typeid(error).name()) + ": " + error.what());
  } catch (...) {
    throw Failure(Code::Internal, what + " threw an object that is not a std::exception. Throw a std::exception.");
  }
}

}  // namespace tf_ipu_shim
