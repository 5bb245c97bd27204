// The operations that a reduction can apply, such as ADD and MAX.
#ifndef popops_OperationDef_hpp
#define popops_OperationDef_hpp

namespace popops {

enum class Operation {
  ADD,
  MUL,
  MIN,
  MAX,
  LOGICAL_AND,
  LOGICAL_OR,
  SQUARE_ADD,  // the sum of the squares
  LOG_ADD      // the sum of values that are given and returned as logarithms
};

}  // namespace popops

#endif
