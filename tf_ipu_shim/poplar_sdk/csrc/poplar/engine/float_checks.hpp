// Watches the CPU's float unit for exceptions that engine options turn into errors.
#ifndef poplar_csrc_float_checks_hpp
#define poplar_csrc_float_checks_hpp

#include <poplar/OptionFlags.hpp>

#include <cfenv>
#include <functional>
#include <string>

namespace poplar::detail {

// While it lives, parallelFor runs on the thread of the caller: the flags of the float unit belong to a thread.
class Serial {
 public:
  Serial();
  ~Serial();
  Serial(const Serial&) = delete;
  Serial& operator=(const Serial&) = delete;

 private:
  bool before_;
};

class FloatChecks {
 public:
  explicit FloatChecks(const OptionFlags& options);

  bool active() const { return watched_ != 0; }
  // Runs `call`; throws application_runtime_error with the text of `what` if it raises a watched exception.
  template <class Call, class What>
  void watch(Call&& call, What&& what) const {
    if (!active()) return call();
    const Serial serial;
    std::feclearexcept(FE_ALL_EXCEPT);
    call();
    if (const int raised = std::fetestexcept(watched_)) fail(raised, what());
  }

 private:
  [[noreturn]] static void fail(int raised, const std::string& what);
  int watched_ = 0;
};

}  // namespace poplar::detail

#endif
