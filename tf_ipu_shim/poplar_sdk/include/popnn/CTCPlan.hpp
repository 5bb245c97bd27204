// The plan of a CTC function: its sizes. Options of a plan have no effect on values.
#ifndef popnn_CTCPlan_hpp
#define popnn_CTCPlan_hpp

#include <ostream>
#include <string>
#include <utility>

namespace popnn {
namespace ctc {

class Plan {
 public:
  Plan() = default;
  explicit Plan(std::string description) : description_(std::move(description)) {}

  friend bool operator<(const Plan &a, const Plan &b) { return a.description_ < b.description_; }
  friend bool operator==(const Plan &a, const Plan &b) { return a.description_ == b.description_; }
  friend bool operator!=(const Plan &a, const Plan &b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &o, const Plan &p) { return o << "CtcPlan" << p.description_; }

 private:
  std::string description_;
};

}  // namespace ctc
}  // namespace popnn

#endif
