// Writes a graph as JSON or in the binary format of this project.
#include "poplar/graph/state.hpp"

#include <poplar/ProfileValue.hpp>
#include <poplar/detail/vertex_table.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {

namespace {

using namespace detail;

ProfileValue valueOf(const Target& target) {
  return ProfileValue::Map{{"type", toString(target.getTargetType())},
                           {"architecture", target.getTargetArchString()},
                           {"numIPUs", target.getNumIPUs()},
                           {"tilesPerIPU", target.getTilesPerIPU()}};
}

ProfileValue valueOf(const Variable& variable) {
  ProfileValue::Vector shape, tiles;
  for (const auto size : variable.shape) shape.emplace_back(size);
  for (const auto& [begin, piece] : variable.tiles.pieces())
    tiles.emplace_back(ProfileValue::Map{{"begin", begin}, {"end", piece.end}, {"tile", piece.tile}});
  return ProfileValue::Map{{"name", variable.name},
                           {"type", variable.type.toString()},
                           {"shape", shape},
                           {"constant", ProfileValue(variable.constant)},
                           {"tileMapping", tiles}};
}

// The parts of variables that a field is connected to.
ProfileValue valueOf(const FieldState& field) {
  ProfileValue::Vector rows;
  for (const auto& row : field.rows) {
    ProfileValue::Vector spans;
    if (row)
      for (const Span& span : row->view.spans())
        spans.emplace_back(ProfileValue::Map{{"variable", variableOf(span.address)},
                                             {"begin", indexOf(span.address)},
                                             {"length", span.length},
                                             {"step", span.step}});
    rows.emplace_back(spans);
  }
  return rows;
}

ProfileValue valueOf(const VertexState& vertex) {
  ProfileValue::Map fields, result;
  for (std::size_t i = 0; i < vertex.fields.size(); ++i)
    if (vertex.fields[i].connected) fields[vertex.type->fields[i].name] = valueOf(vertex.fields[i]);
  result = {{"type", vertex.type->name}, {"fields", fields}};
  if (vertex.tile) result["tile"] = *vertex.tile;
  return result;
}

}  // namespace

void Graph::serialize(std::ostream& out, SerializationFormat format) const {
  if (format != SerializationFormat::JSON) return writeGraph(out, state_);
  ProfileValue::Vector variables, sets;
  for (const auto& variable : state_->variables) variables.push_back(valueOf(variable));
  for (const auto& set : state_->compute_sets) {
    ProfileValue::Vector vertices;
    for (const unsigned vertex : set.vertices) vertices.push_back(valueOf(state_->vertices[vertex]));
    sets.emplace_back(ProfileValue::Map{{"name", set.name}, {"vertices", vertices}});
  }
  serializeToJSON(out, ProfileValue::Map{{"target", valueOf(state_->target)},
                                         {"replicationFactor", state_->replicas},
                                         {"variables", variables},
                                         {"computeSets", sets}});
}

}  // namespace poplar
