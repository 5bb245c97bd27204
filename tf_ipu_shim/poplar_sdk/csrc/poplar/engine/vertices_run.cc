// Runs vertices: their states in memory, buffers for scattered views, errors with their names.
#include "poplar/engine/runner.hpp"

#include <poplar/detail/checks.hpp>
#include <poplar/detail/kernel.hpp>
#include <poplar/detail/random_state.hpp>

#include <sys/mman.h>

#include <cstring>

namespace poplar::detail {

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    throw poplar_error("The engine needs " + std::to_string(bytes) + " bytes of host memory, which are not free. Free "
                       "memory or use smaller tensors.");
  data_ = static_cast<char*>(pages);
}
Pages::~Pages() {
  if (data_) munmap(data_, bytes_);
}

namespace {
constexpr std::size_t parallel_bytes = 1 << 16;
constexpr std::chrono::microseconds parallel_time{100};
}  // namespace

Vertices::Vertices(const ComputeSetPlan& plan, const Memory& memory, const FloatChecks& checks, std::uint64_t origin)
    : plan_(plan), memory_(memory), checks_(checks), origin_(origin << 32), states_(plan.state_bytes), scratch_(plan.scratch_bytes + 64) {
  construct();
  bind();
}

Vertices::~Vertices() {
  for (const auto& vertex : plan_.vertices) vertex.type->destroy(states_.data() + vertex.offset);
}

void Vertices::construct() {
  for (const auto& vertex : plan_.vertices) {
    char* state = states_.data() + vertex.offset;
    vertex.type->construct(state);
    for (const auto& [offset, value] : vertex.members) std::memcpy(state + offset, value.data(), value.size());
    for (const auto& field : vertex.fields)
      if (!field.values.empty()) std::memcpy(scratch_.data() + field.value_scratch, field.values.data(), field.values.size());
  }
}

void Vertices::bind() {
  for (const auto& vertex : plan_.vertices)
    for (const auto& field : vertex.fields) bindField(vertex, field);
}

void Vertices::bindField(const VertexPlan& vertex, const FieldPlan& plan) {
  void* member = states_.data() + vertex.offset + plan.field->offset;
  if (plan.field->kind == FieldKind::Value) {
    void* row = scratch_.data() + plan.value_scratch;
    return plan.field->bind(member, &row, &plan.value_count, 1);
  }
  std::vector<void*> rows;
  std::vector<std::size_t> sizes;
  for (const auto& row : plan.rows) {
    rows.push_back(row.pointer(memory_, scratch_.data()));
    sizes.push_back(row.count);
  }
  plan.field->bind(member, rows.data(), sizes.data(), rows.size());
}

void Vertices::readEarly() {
  for (const auto& vertex : plan_.vertices) {
    if (!vertex.has_early) continue;
    for (const auto& field : vertex.fields)
      if (field.early)
        for (const auto& row : field.rows) row.load(memory_, scratch_.data());
  }
}

std::string Vertices::nameOf(const VertexPlan& vertex) const {
  return "Vertex " + std::string(vertex.type->name) + " in compute set '" + plan_.name + "' on tile " +
         std::to_string(vertex.tile);
}

void Vertices::fail(const VertexPlan& vertex) const {
  const std::string text = nameOf(vertex);
  try {
    throw;
  } catch (const OutOfBounds& error) {
    std::string name = "?";
    const auto at = reinterpret_cast<std::uintptr_t>(error.field) -
                    reinterpret_cast<std::uintptr_t>(states_.data() + vertex.offset);
    for (std::size_t i = 0; i < vertex.type->field_count; ++i) {
      const Field& field = vertex.type->fields[i];
      if (at >= field.offset && at < field.offset + std::max<std::size_t>(field.size, 1)) name = field.name;
    }
    throw application_runtime_error(text + " accesses field '" + name + "' out of bounds: " + error.what() +
                                    ". Fix the index, or connect a larger tensor.");
  } catch (const std::exception& error) {
    throw application_runtime_error(text + " threw an exception: " + error.what());
  } catch (...) {
    throw application_runtime_error(text + " threw an exception that is not a std::exception.");
  }
}

bool Vertices::compute(const VertexPlan& vertex) {
  try {
    bool all = true;
    for (unsigned worker = 0; worker < vertex.type->workers; ++worker) {
      VertexContext context{vertex.tile, worker, mixBits(random_ + randomIncrement * (vertex.offset + worker))};
      all &= vertex.type->compute(states_.data() + vertex.offset, context);
    }
    return all;
  } catch (...) {
    fail(vertex);
  }
}

bool Vertices::computeChecked(const VertexPlan& vertex) {
  if (!checks_.active()) return compute(vertex);
  bool result = false;
  checks_.watch([&] { result = compute(vertex); }, [&] { return nameOf(vertex); });
  return result;
}

bool Vertices::runOne(const VertexPlan& vertex) {
  if (!vertex.has_buffers) return computeChecked(vertex);
  for (const auto& field : vertex.fields)
    if (!field.early)
      for (const auto& row : field.rows) row.load(memory_, scratch_.data());
  const bool result = computeChecked(vertex);
  for (const auto& field : vertex.fields)
    if (field.written)
      for (const auto& row : field.rows) row.store(memory_, scratch_.data());
  return result;
}

bool Vertices::runPart(std::size_t begin, std::size_t end) {
  bool all = true;
  for (std::size_t i = begin; i < end; ++i) all &= runOne(plan_.vertices[i]);
  return all;
}

bool Vertices::run() {
  if (plan_.has_early) readEarly();
  random_ = mixBits(RandomState::ofProcess().state() ^ mixBits(origin_ + ++runs_));
  const std::size_t count = plan_.vertices.size();
  const auto start = std::chrono::steady_clock::now();
  std::atomic<bool> all{true};
  // Waking threads is not worth it for a compute set that was short the last time.
  if (count > 1 && !checks_.active() && (plan_.data_bytes > parallel_bytes || last_ > parallel_time)) {
    parallelFor(count, 1, [&](std::size_t begin, std::size_t end) {
      if (!runPart(begin, end)) all = false;
    });
  } else {
    all = runPart(0, count);
  }
  last_ = std::chrono::steady_clock::now() - start;
  return all;
}

}  // namespace poplar::detail
