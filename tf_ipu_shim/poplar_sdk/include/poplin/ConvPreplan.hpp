// `preplan()`: nothing is planned here, so it only checks options.
#ifndef poplin_ConvPreplan_hpp
#define poplin_ConvPreplan_hpp

#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>

namespace poplin {

void preplan(const std::set<ConvPlanParams> &convs, const std::set<MatMulPlanParams> &matmuls, PlanningCache &cache);

}  // namespace poplin

#endif
