// Errors that reach TensorFlow: a status code and a message that says what to do.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_FAILURE_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_FAILURE_HPP_

#include <functional>
#include <stdexcept>
#include <string>

namespace tf_ipu_shim {

enum class Code { InvalidArgument = 3, NotFound = 5, Internal = 13 };

class Failure : public std::runtime_error {
 public:
  Failure(Code code, const std::string& message) : std::runtime_error(message), code(code) {}
  const Code code;
};

// While it lives, a crash of this thread prints a line.
class CrashText {
 public:
  explicit CrashText(const std::string& text);
  ~CrashText();
  CrashText(const CrashText&) = delete;
  CrashText& operator=(const CrashText&) = delete;

 private:
  const std::string text_;
  const std::string* const outer_;
};

// Calls a user's code; an exception becomes a Failure that begins with `what` ("Build of libadd.so"). A crash prints a
// line that does, or becomes a Failure with TF_IPU_SHIM_CHECK_CODELETS: the call is tried in a child process first.
void callUser(const std::string& what, const std::function<void()>& call);

// A C++ name as it is written.
std::string demangled(const char* name);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_FAILURE_HPP_
