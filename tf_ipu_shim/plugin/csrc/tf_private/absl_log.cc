// Defines abseil's log of an int, which TensorFlow 2.20 declares in its headers and does not export. The compiler that
// built it mangles that function's name differently from g++.
#include "absl/base/config.h"

#if ABSL_LTS_RELEASE_VERSION == 20250127
#include "absl/log/internal/log_message.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace log_internal {
template LogMessage& LogMessage::operator<<(const int& v);
}  // namespace log_internal
ABSL_NAMESPACE_END
}  // namespace absl
#endif
