// A call of the driver in Python: the name of its handler, the request and the answer.
#pragma once

namespace tf_ipu_shim {

template <class Asked, class Answered>
struct DriverCall {
  using Request = Asked;
  using Answer = Answered;
};

}  // namespace tf_ipu_shim
