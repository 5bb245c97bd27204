// Tries users' code in a child process first: a crash is then an error and does not end the script.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_CHILD_PROCESS_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_CHILD_PROCESS_HPP_

#include <functional>
#include <optional>
#include <string>

namespace tf_ipu_shim {

// Calls the function in a child process, whose memory is a copy. Returns how a signal ended it (" crashed: ..."), "" if
// the function returned false. Returns nothing if it returned true or threw: the call that follows in this process
// throws again. The child's output is shown only in the text of a crash.
std::optional<std::string> failureInChild(const std::function<bool()>& call);

// Whether TF_IPU_SHIM_CHECK_CODELETS is set.
bool isChecked();

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_CHILD_PROCESS_HPP_
