// Converts float16 arrays to and from float32, with F16C instructions if the processor has them.
#include "floats/float16_conversion.h"

#include "unsupported/Eigen/CXX11/Tensor"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#endif

namespace tf_ipu_shim {
namespace {

#if defined(__x86_64__)
// Eight numbers at a time; the plugin is compiled for any processor, so that Eigen's conversions are many instructions
// for each. Fewer than eight are left.
constexpr int64_t kLanes = 8;

// The compiler's own functions: <immintrin.h>, which wraps them, takes longer to compile than a TensorFlow header.
typedef short Halves __attribute__((vector_size(2 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));
constexpr int kToNearest = 0;

// __builtin_cpu_supports knows the name f16c only in newer compilers.
bool HasF16CInstructions() {
  static const bool has = [] {
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}

__attribute__((target("avx,f16c"))) int64_t ManyToFloats(const uint16_t* halves, int64_t count, float* floats) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Halves narrow;
    std::memcpy(&narrow, halves + i, sizeof(narrow));
    const Floats wide = __builtin_ia32_vcvtph2ps256(narrow);
    std::memcpy(floats + i, &wide, sizeof(wide));
  }
  return i;
}

__attribute__((target("avx,f16c"))) int64_t ManyToHalves(const float* floats, int64_t count, uint16_t* halves) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Floats wide;
    std::memcpy(&wide, floats + i, sizeof(wide));
    const Halves narrow = __builtin_ia32_vcvtps2ph256(wide, kToNearest);
    std::memcpy(halves + i, &narrow, sizeof(narrow));
  }
  return i;
}
#else
bool HasF16CInstructions() { return false; }
int64_t ManyToFloats(const uint16_t*, int64_t, float*) { return 0; }
int64_t ManyToHalves(const float*, int64_t, uint16_t*) { return 0; }
#endif

}  // namespace

void Float16ToFloat32(const uint16_t* halves, int64_t count, float* floats) {
  int64_t i = HasF16CInstructions() ? ManyToFloats(halves, count, floats) : 0;
  for (; i < count; ++i) floats[i] = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(halves[i]));
}

void Float32ToFloat16(const float* floats, int64_t count, uint16_t* halves) {
  int64_t i = HasF16CInstructions() ? ManyToHalves(floats, count, halves) : 0;
  for (; i < count; ++i) halves[i] = Eigen::numext::bit_cast<uint16_t>(static_cast<Eigen::half>(floats[i]));
}

}  // namespace tf_ipu_shim
