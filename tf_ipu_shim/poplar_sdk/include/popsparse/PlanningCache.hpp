// An empty class with the name of Poplar's cache of plans: the kernels here need no plans.
#ifndef popsparse_PlanningCache_hpp
#define popsparse_PlanningCache_hpp

#include <poplin/PlanningCache.hpp>

namespace popsparse {
namespace dynamic {

class PlanningCache {
 public:
  PlanningCache() = default;
  PlanningCache(poplin::PlanningCache *) {}
};

}  // namespace dynamic

namespace static_ {

class PlanningCache : public dynamic::PlanningCache {
 public:
  using dynamic::PlanningCache::PlanningCache;
};

}  // namespace static_
}  // namespace popsparse

#endif
