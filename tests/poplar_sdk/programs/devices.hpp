// The device on which the programs of a graph run.
#pragma once

#include <poplar/Device.hpp>
#include <poplar/Graph.hpp>

inline poplar::Device deviceOf(const poplar::Graph& graph) {
  const auto& target = graph.getTarget();
  const unsigned ipus = target.getNumIPUs() * graph.getReplicationFactor();
  return poplar::Device(0, target.createVirtualTarget(ipus, target.getTilesPerIPU()));
}
