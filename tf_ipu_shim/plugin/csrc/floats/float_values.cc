// Finds NaN in floating-point tensors, counts infinities, and replaces those of float16 by NaN.
#include "floats/float_values.h"

#include "tensorflow/core/framework/types.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file reads TensorFlow's tensors

// `Bits` are as wide as the type; a number whose exponent is all ones is infinite, or none where its fraction is not 0.
template <typename Bits>
void Count(const Tensor& tensor, Bits exponent, Bits fraction, SpecialValues* found) {
  const Bits* const values = static_cast<const Bits*>(tensor.data());
  const int64_t count = tensor.NumElements();
  int64_t special = 0, nan = 0;
  const auto look = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool is_special = (values[i] & exponent) == exponent;
      special += is_special;
      nan += is_special && (values[i] & fraction) != 0;
    }
  };
  // Most blocks hold none; of a loop of fixed length compilers make vector instructions.
  constexpr int64_t kBlock = 512;
  int64_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    Bits any = 0;
    for (int64_t i = 0; i < kBlock; ++i) any |= static_cast<Bits>((values[begin + i] & exponent) == exponent);
    if (any != 0) look(begin, begin + kBlock);
  }
  look(begin, count);
  found->nan |= nan > 0;
  found->infinite += special - nan;
}

}  // namespace

bool IsFloat(DataType type) {
  return type == DT_FLOAT || type == DT_HALF || type == DT_BFLOAT16 || type == DT_DOUBLE;
}

void CountSpecialValues(const Tensor& tensor, SpecialValues* found) {
  if (!IsFloat(tensor.dtype()) || !tensor.IsInitialized()) return;
  switch (tensor.dtype()) {
    case DT_FLOAT:
      return Count<uint32_t>(tensor, 0x7f800000u, 0x007fffffu, found);
    case DT_HALF:
      return Count<uint16_t>(tensor, 0x7c00, 0x03ff, found);
    case DT_BFLOAT16:
      return Count<uint16_t>(tensor, 0x7f80, 0x007f, found);
    default:
      return Count<uint64_t>(tensor, 0x7ff0000000000000u, 0x000fffffffffffffu, found);
  }
}

double ValueAt(const Tensor& tensor, int64_t index) {
  switch (tensor.dtype()) {
    case DT_FLOAT:
      return tensor.unaligned_flat<float>()(index);
    case DT_HALF:
      return static_cast<float>(tensor.unaligned_flat<Eigen::half>()(index));
    case DT_BFLOAT16:
      return static_cast<float>(tensor.unaligned_flat<bfloat16>()(index));
    default:
      return tensor.unaligned_flat<double>()(index);
  }
}

void SetInfinitiesToNan(Tensor* tensor) {
  constexpr uint16_t kExponent = 0x7c00, kFraction = 0x03ff, kNan = 0x7e00;
  if (tensor->dtype() != DT_HALF) return;
  uint16_t* const values = static_cast<uint16_t*>(tensor->data());
  for (int64_t i = 0; i < tensor->NumElements(); ++i) {
    if ((values[i] & kExponent) == kExponent && (values[i] & kFraction) == 0) values[i] = kNan;
  }
}

}  // namespace tf_ipu_shim
