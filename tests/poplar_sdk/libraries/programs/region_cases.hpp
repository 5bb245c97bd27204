// Cases of regions of interest, and of B-splines for graph networks.
#pragma once

#include <popnn/experimental/ROIAlign.hpp>
#include <popops/SplineBasis.hpp>
#include <popops/SplineWeighting.hpp>

#include "cases.hpp"

inline void regionCase(Case &c, const Type &type, std::size_t ratio, bool aligned) {
  using namespace popnn::experimental;
  auto data = c.input("data", type, {2, 3, 7, 9}), images = c.data("images", INT, {4}, {1, 0, 1, 1});
  auto regions = c.data("regions", FLOAT, {4, 4}, {2, 2, 14, 9, 0, 0, 18, 14, 7, 3, 7.5, 3.25, -4, 5, 30, 11});
  const roiAlignParams params(ratio, 3, 2, aligned, 0.5f);
  c.output("pooled", roiAlignFwd(c.graph, c.prog, data, regions, images, params));
  auto gradients = c.input("gradients", type, {4, 3, 3, 2});
  c.output("slopes", roiAlignInputGradient(c.graph, c.prog, data, regions, images, gradients, params));
  auto flat = data.flatten();
  c.error("flat data", [&] { roiAlignFwd(c.graph, c.prog, flat, regions, images, params); });
  c.error("other images", [&] { roiAlignFwd(c.graph, c.prog, data, regions, data, params); });
}

inline void splineCase(Case &c, const Type &type, unsigned degree) {
  const auto pseudo = c.input("pseudo", type, {7, 2}, 0, 0.999);
  const auto sizes = c.data("sizes", INT, {2}, {5, 6}), open = c.data("open", UNSIGNED_CHAR, {2}, {1, 0});
  const std::size_t splines = (degree + 1) * (degree + 1);
  const auto basis = c.input("old basis", type, {7, splines}), places = c.data("old places", INT, {7, splines},
                                                                                std::vector<double>(7 * splines));
  popops::splineBasis(c.graph, pseudo, sizes, open, basis, places, degree, c.prog);
  c.output("basis", basis);
  c.output("places", places);
  const auto x = c.input("x", type, {7, 3}), weight = c.input("weight", type, {30, 3, 4});
  c.output("features", popops::splineWeighting(c.graph, x, weight, basis, places, c.prog));
  c.error("degree", [&] { popops::splineBasis(c.graph, pseudo, sizes, open, basis, places, 4, c.prog); });
  c.error("sizes", [&] { popops::splineBasis(c.graph, pseudo, pseudo, open, basis, places, degree, c.prog); });
  c.error("weight", [&] { popops::splineWeighting(c.graph, x, x, basis, places, c.prog); });
}

inline std::vector<NamedCase> regionCases() {
  return {
      {"regions", [](Case &c) { regionCase(c, FLOAT, 2, false); }},
      {"regions in halves", [](Case &c) { regionCase(c, HALF, 2, false); }},
      {"aligned regions", [](Case &c) { regionCase(c, FLOAT, 3, true); }},
      {"regions by size", [](Case &c) { regionCase(c, FLOAT, 0, true); }},
      {"splines 1", [](Case &c) { splineCase(c, FLOAT, 1); }},
      {"splines 2", [](Case &c) { splineCase(c, FLOAT, 2); }},
      {"splines 3", [](Case &c) { splineCase(c, FLOAT, 3); }},
      {"splines in halves", [](Case &c) { splineCase(c, HALF, 2); }},
  };
}
