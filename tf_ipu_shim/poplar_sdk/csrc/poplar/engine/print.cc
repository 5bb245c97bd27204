// Formats tensors for PrintTensor: nested brackets, with long tensors summarised.
#include "poplar/engine/runner.hpp"

#include <poplar/TypeConversion.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace poplar::detail {

namespace {

class Printer {
 public:
  Printer(std::ostream& out, const PrintStep& step, const char* data)
      : out_(out), format_(step.format), shape_(step.tensor.shape()), type_(step.tensor.elementType()), data_(data) {
    summarised_ = step.tensor.numElements() > format_.summariseThreshold;
    chooseFormat(step.tensor.numElements());
  }

  void print(const std::string& title) {
    out_ << title << ": ";
    if (shape_.empty()) out_ << text(0);
    else nest(0, 0, product(shape_), "");
    out_ << '\n';
  }

 private:
  double value(std::size_t index) const {
    double result = 0;
    convertToHost(data_ + index * typeSize(type_), type_, &result, TypeTraits::make<double>(), 1);
    return result;
  }

  void chooseFormat(std::size_t count) {
    if (!type_.isFloatingPoint()) return;
    double largest = 0, smallest = 1;
    for (std::size_t i = 0; i < count; ++i) {
      const double size = std::fabs(value(i));
      if (!std::isfinite(size)) continue;
      largest = std::max(largest, size);
      if (size > 0) smallest = std::min(smallest, size);
    }
    scientific_ = format_.floatFormat == FloatFormat::SCIENTIFIC ||
                  (format_.floatFormat == FloatFormat::AUTO && (largest >= 1e8 || smallest < 1e-4));
    const int before = largest >= 10 ? static_cast<int>(std::floor(std::log10(largest))) + 1 : 1;
    decimals_ = std::max(0, static_cast<int>(format_.digits) - (scientific_ ? 1 : before));
    for (std::size_t i = 0; i < count; ++i) width_ = std::max(width_, text(i).size());
  }

  std::string text(std::size_t index) const {
    char buffer[64];
    if (type_ == UNSIGNED_LONGLONG || type_ == LONGLONG) {
      std::int64_t whole = 0;
      convertToHost(data_ + index * 8, type_, &whole, TypeTraits::make<std::int64_t>(), 1);
      std::snprintf(buffer, sizeof(buffer), type_ == LONGLONG ? "%lld" : "%llu", static_cast<long long>(whole));
    } else if (!type_.isFloatingPoint()) {
      std::snprintf(buffer, sizeof(buffer), "%.0f", value(index));
    } else {
      std::snprintf(buffer, sizeof(buffer), scientific_ ? "%.*e" : "%.*f", decimals_, value(index));
    }
    const std::string result = buffer;
    return result.size() < width_ ? std::string(width_ - result.size(), ' ') + result : result;
  }

  // Calls with the indices that are shown; -1 stands for those left out.
  template <class F>
  void shown(std::size_t size, F&& call) const {
    const std::size_t edge = format_.edgeItems;
    if (!summarised_ || size <= 2 * edge) {
      for (std::size_t i = 0; i < size; ++i) call(static_cast<std::int64_t>(i));
      return;
    }
    for (std::size_t i = 0; i < edge; ++i) call(static_cast<std::int64_t>(i));
    call(-1);
    for (std::size_t i = size - edge; i < size; ++i) call(static_cast<std::int64_t>(i));
  }

  void nest(std::size_t dimension, std::size_t begin, std::size_t count, const std::string& indent) {
    out_ << format_.openBracket;
    if (dimension + 1 == shape_.size()) row(begin, indent);
    else {
      const std::size_t part = shape_[dimension] ? count / shape_[dimension] : 0;
      const std::string deeper = indent + "  ";
      out_ << '\n';
      shown(shape_[dimension], [&](std::int64_t i) {
        out_ << deeper;
        if (i < 0) out_ << "...";
        else nest(dimension + 1, begin + static_cast<std::size_t>(i) * part, part, deeper);
        out_ << '\n';
      });
      out_ << indent;
    }
    out_ << format_.closeBracket;
  }

  void row(std::size_t begin, const std::string& indent) {
    std::size_t line = indent.size() + 1;
    bool first = true;
    shown(shape_.back(), [&](std::int64_t i) {
      const std::string item = i < 0 ? "..." : text(begin + static_cast<std::size_t>(i));
      if (!first && format_.maxLineWidth && line + item.size() + 1 > format_.maxLineWidth) {
        out_ << '\n' << indent << ' ';
        line = indent.size() + 1;
      } else if (!first) {
        out_ << format_.separator;
        ++line;
      }
      out_ << item;
      line += item.size();
      first = false;
    });
  }

  std::ostream& out_;
  const PrintTensorFmt& format_;
  const View::Shape shape_;
  const Type type_;
  const char* data_;
  bool summarised_ = false, scientific_ = false;
  int decimals_ = 7;
  std::size_t width_ = 0;
};

}  // namespace

void printTensor(std::ostream& out, const PrintStep& step, const char* data) {
  Printer(out, step, data).print(step.title);
  out.flush();
}

}  // namespace poplar::detail
