// Slices, permutes, reshapes and concatenates views, which are strided arrays of elements or of runs of them.
#include "poplar/views/view.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <numeric>

namespace poplar::detail {

namespace {
constexpr std::size_t largest_count = std::size_t{1} << 62;  // positions and their distances have signs
constexpr std::size_t most_pieces = std::size_t{1} << 28;
}

std::size_t product(const View::Shape& shape) {
  if (std::find(shape.begin(), shape.end(), std::size_t{0}) != shape.end()) return 0;
  std::size_t count = 1;
  for (const std::size_t size : shape)
    if (__builtin_mul_overflow(count, size, &count) || count > largest_count)
      throw tensor_creation_error("The shape " + shapeText(shape) + " has more than 2^62 elements, which no tensor can " +
                                  "have. Use a smaller shape.");
  return count;
}

namespace {

std::vector<std::int64_t> rowMajor(const View::Shape& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<std::int64_t>(shape[d]);
  }
  return strides;
}

const Run& runAt(const std::vector<Run>& runs, std::int64_t position) {
  auto after = std::upper_bound(runs.begin(), runs.end(), position,
                                [](std::int64_t at, const Run& run) { return at < run.start; });
  return *std::prev(after);
}

bool sameVariable(Address a, Address b) { return variableOf(a) == variableOf(b); }

// Dimensions of size 1 left out, neighbours joined that are one dimension in memory.
struct Loops {
  std::vector<std::int64_t> sizes, strides;
};

Loops joinedLoops(const View::Shape& shape, const std::vector<std::int64_t>& strides) {
  Loops loops;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto size = static_cast<std::int64_t>(shape[d]);
    if (size == 1) continue;
    if (!loops.sizes.empty() && loops.strides.back() == size * strides[d]) {
      loops.sizes.back() *= size;
      loops.strides.back() = strides[d];
    } else {
      loops.sizes.push_back(size);
      loops.strides.push_back(strides[d]);
    }
  }
  return loops;
}

}  // namespace

void SpanJoiner::add(Span span) {
  if (span.length == 1) span.step = 1;
  if (spans_.empty() || !sameVariable(spans_.back().address, span.address)) return spans_.push_back(span);
  Span& before = spans_.back();
  const std::int64_t gap = span.address - before.last();
  if (before.length == 1 && span.length == 1) {
    before.step = gap;
    before.length = 2;
  } else if (before.length == 1 && gap == span.step) {
    before = {before.address, span.length + 1, span.step};
  } else if (before.length > 1 && gap == before.step && (span.length == 1 || span.step == before.step)) {
    before.length += span.length;
  } else {
    spans_.push_back(span);
  }
}

View::View(Address address, Shape shape) : shape_(std::move(shape)), strides_(rowMajor(shape_)), offset_(address) {}

std::size_t View::count() const { return product(shape_); }

// Takes a single run away, so that later views are strided views of elements again.
void View::narrow() {
  if (!runs_ || count() == 0) return;
  std::int64_t low = offset_, high = offset_;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const std::int64_t reach = strides_[d] * (static_cast<std::int64_t>(shape_[d]) - 1);
    (reach < 0 ? low : high) += reach;
  }
  const Run& run = runAt(*runs_, low);
  if (high >= run.start + run.span.length) return;
  offset_ = run.span.address + (offset_ - run.start) * run.span.step;
  for (auto& stride : strides_) stride *= run.span.step;
  runs_ = nullptr;
}

View View::slice(const Shape& begin, const Shape& end) const {
  View result = *this;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    result.shape_[d] = end[d] - begin[d];
    result.offset_ += static_cast<std::int64_t>(begin[d]) * strides_[d];
  }
  result.narrow();
  return result;
}

View View::inVariable(std::size_t variable) const {
  View result = *this;
  if (!runs_) {
    result.offset_ = addressOf(variable, indexOf(offset_));
    return result;
  }
  auto runs = std::make_shared<std::vector<Run>>(*runs_);
  for (Run& run : *runs) run.span.address = addressOf(variable, indexOf(run.span.address));
  result.runs_ = std::move(runs);
  return result;
}

View View::permute(const std::vector<unsigned>& order) const {
  View result = *this;
  for (std::size_t d = 0; d < order.size(); ++d) {
    result.shape_[d] = shape_[order[d]];
    result.strides_[d] = strides_[order[d]];
  }
  return result;
}

View View::reverse(unsigned dimension) const {
  View result = *this;
  if (shape_[dimension] == 0) return result;
  result.offset_ += strides_[dimension] * (static_cast<std::int64_t>(shape_[dimension]) - 1);
  result.strides_[dimension] = -strides_[dimension];
  return result;
}

View View::subSample(std::size_t stride, unsigned dimension) const {
  View result = *this;
  result.shape_[dimension] = (shape_[dimension] + stride - 1) / stride;
  result.strides_[dimension] *= static_cast<std::int64_t>(stride);
  result.narrow();
  return result;
}

View View::repeatOne(std::size_t count, unsigned dimension) const {
  View result = *this;
  result.shape_[dimension] = count;
  result.strides_[dimension] = 0;
  return result;
}

// Divides the joined dimensions into the new ones, if each new one lies within one of them.
bool View::reshapeInPlace(const Shape& shape) {
  const Loops loops = joinedLoops(shape_, strides_);
  std::vector<std::int64_t> strides(shape.size(), 0);
  std::size_t d = shape.size();
  for (std::size_t loop = loops.sizes.size(); loop-- > 0;) {
    std::int64_t left = loops.sizes[loop], stride = loops.strides[loop];
    while (left > 1) {
      if (d == 0) return false;
      const auto size = static_cast<std::int64_t>(shape[--d]);
      if (size == 0 || left % size != 0) return false;
      strides[d] = stride;
      stride *= size;
      left /= size;
    }
  }
  shape_ = shape;
  strides_ = std::move(strides);
  return true;
}

View View::reshape(Shape shape) const {
  View result = *this;
  if (count() == 0) return View(offset_, std::move(shape));
  if (result.reshapeInPlace(shape)) return result;
  return fromSpans(spans(), std::move(shape));
}

View View::fromSpans(std::vector<Span> spans, Shape shape) {
  View result(0, std::move(shape));
  auto runs = std::make_shared<std::vector<Run>>();
  runs->reserve(spans.size());
  std::int64_t start = 0;
  for (const Span& span : spans) {
    runs->push_back({start, span});
    start += span.length;
  }
  if (runs->empty()) return result;
  result.runs_ = std::move(runs);
  result.narrow();
  return result;
}

View View::concat(const std::vector<View>& views, unsigned dimension) {
  const std::size_t rank = views.front().shape_.size();
  std::vector<unsigned> forward{dimension}, back(rank);
  for (unsigned d = 0; d < rank; ++d)
    if (d != dimension) forward.push_back(d);
  for (unsigned d = 0; d < rank; ++d) back[forward[d]] = d;
  SpanJoiner joiner;
  Shape shape = views.front().permute(forward).shape_;
  shape[0] = 0;
  for (const View& view : views) {
    shape[0] += view.shape_[dimension];
    for (const Span& span : view.permute(forward).spans()) joiner.add(span);
  }
  return fromSpans(joiner.take(), std::move(shape)).permute(back);
}

template <class Visitor>
void View::visitRow(std::int64_t at, std::int64_t count, std::int64_t stride, Visitor&& visit) const {
  if (!runs_) return visit(Span{at, count, stride});
  while (count > 0) {
    const Run& run = runAt(*runs_, at);
    std::int64_t here = count;
    if (stride > 0) here = std::min(count, (run.start + run.span.length - at + stride - 1) / stride);
    if (stride < 0) here = std::min(count, (at - run.start) / -stride + 1);
    visit(Span{run.span.address + (at - run.start) * run.span.step, here, stride * run.span.step});
    at += here * stride;
    count -= here;
  }
}

std::vector<Span> View::spans() const {
  if (count() == 0) return {};
  Loops loops = joinedLoops(shape_, strides_);
  std::int64_t row = 1, stride = 1;
  if (!loops.sizes.empty()) {
    row = loops.sizes.back();
    stride = loops.strides.back();
    loops.sizes.pop_back();
  }
  if (const std::size_t rows = product({loops.sizes.begin(), loops.sizes.end()}); rows > most_pieces)
    throw tensor_creation_error("A view of shape " + shapeText(shape_) + " has " + std::to_string(rows) +
                                " pieces of memory; expected at most " + std::to_string(most_pieces) +
                                ". Copy it to a variable, or broadcast it less.");
  SpanJoiner joiner;
  std::vector<std::int64_t> index(loops.sizes.size(), 0);
  std::int64_t at = offset_;
  while (true) {
    visitRow(at, row, stride, [&](const Span& span) { joiner.add(span); });
    std::size_t d = index.size();
    while (d > 0) {
      --d;
      at += loops.strides[d];
      if (++index[d] < loops.sizes[d]) break;
      at -= loops.sizes[d] * loops.strides[d];
      index[d] = 0;
      if (d == 0) return joiner.take();
    }
    if (index.empty()) return joiner.take();
  }
}

std::optional<Span> View::contiguous() const {
  if (!runs_ && count() > 0) {
    const Loops loops = joinedLoops(shape_, strides_);
    if (loops.sizes.empty()) return Span{offset_, 1, 1};
    if (loops.sizes.size() == 1 && loops.strides[0] == 1) return Span{offset_, loops.sizes[0], 1};
    return std::nullopt;
  }
  const auto all = spans();
  if (all.size() == 1 && all[0].step == 1) return all[0];
  return std::nullopt;
}

namespace {

using Overlap = std::optional<std::pair<std::size_t, std::size_t>>;

// Compares the elements of overlapping spans.
Overlap overlapOfElements(const std::vector<Span>& spans, const std::vector<std::size_t>& group) {
  std::vector<std::pair<Address, std::size_t>> elements;
  for (std::size_t which : group)
    for (std::int64_t i = 0; i < spans[which].length; ++i)
      elements.emplace_back(spans[which].address + i * spans[which].step, which);
  std::sort(elements.begin(), elements.end());
  auto same = std::adjacent_find(elements.begin(), elements.end(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; });
  if (same == elements.end()) return std::nullopt;
  return std::pair(same->second, std::next(same)->second);
}

// Whether some element is in two spans of a group, by a bit for each element of its extent.
bool meetAnywhere(const std::vector<Span>& spans, const std::vector<std::size_t>& group, Address low, Address high) {
  std::vector<bool> seen(static_cast<std::size_t>(high - low) + 1);
  for (std::size_t which : group) {
    for (std::int64_t i = 0; i < spans[which].length; ++i) {
      auto bit = seen[static_cast<std::size_t>(spans[which].address + i * spans[which].step - low)];
      if (bit) return true;
      bit = true;
    }
  }
  return false;
}

}  // namespace

Overlap findOverlap(const std::vector<Span>& spans) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i : order)
    if (spans[i].step == 0 && spans[i].length > 1) return std::pair(i, i);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return spans[a].low() < spans[b].low(); });
  for (std::size_t begin = 0; begin < order.size();) {
    std::vector<std::size_t> group{order[begin]};
    Address high = spans[order[begin]].high();
    while (++begin < order.size() && spans[order[begin]].low() <= high) {
      group.push_back(order[begin]);
      high = std::max(high, spans[order[begin]].high());
    }
    if (group.size() > 1 && meetAnywhere(spans, group, spans[group[0]].low(), high))
      return overlapOfElements(spans, group);
  }
  return std::nullopt;
}

}  // namespace poplar::detail
