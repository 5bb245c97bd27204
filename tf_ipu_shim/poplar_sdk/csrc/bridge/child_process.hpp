// Tries users' code in a child process first: a crash is then an error and does not end the script.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_CHILD_PROCESS_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_CHILD_PROCESS_HPP_

#include <functional>
#include <string>

namespace tf_ipu_shim {

// With TF_IPU_SHIM_CHECK_CODELETS, calls the function in a child process, whose memory is a copy; throws a Failure if
// the child is ended by a signal. The child's output is shown only in that case. Exceptions are ignored here: the call
// that follows in this process throws them again.
void checkInChild(const std::string& what, const std::function<void()>& call);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_CHILD_PROCESS_HPP_
