// Names the types of the request and the answer of a call to the driver in Python.
#pragma once

namespace tf_ipu_shim {

template <class Asked, class Answered>
struct DriverCall {
  using Request = Asked;
  using Answer = Answered;
};

}  // namespace tf_ipu_shim
