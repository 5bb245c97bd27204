// The orders in which topK() can return its results.
#ifndef popops_SortOrder_hpp
#define popops_SortOrder_hpp

#include <iosfwd>

namespace popops {

enum class SortOrder { NONE, ASCENDING, DESCENDING };

std::ostream &operator<<(std::ostream &os, const SortOrder &order);

}  // namespace popops

#endif
