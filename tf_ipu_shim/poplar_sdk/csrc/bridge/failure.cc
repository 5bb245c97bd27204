// Turns exceptions of users' code into failures.
#include "failure.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

namespace tf_ipu_shim {

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

void callUser(const std::string& what, const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(Code::Internal, what + " threw " + demangled(typeid(error).name()) + ": " + error.what());
  } catch (...) {
    throw Failure(Code::Internal, what + " threw an object that is no std::exception. Throw a std::exception.");
  }
}

}  // namespace tf_ipu_shim
