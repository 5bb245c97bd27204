// An empty class with the name of Poplar's cache of plans: the kernels here need no plans.
#ifndef poplin_PlanningCache_hpp
#define poplin_PlanningCache_hpp

#include <cstddef>

namespace poplin {

class PlanningCache {
 public:
  std::size_t size() const { return 0; }
};

namespace matmul {

class PlanningCache : public poplin::PlanningCache {
 public:
  poplin::PlanningCache &getImpl() { return *this; }
};

}  // namespace matmul
}  // namespace poplin

#endif
