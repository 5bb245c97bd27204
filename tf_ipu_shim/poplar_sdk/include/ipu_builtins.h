// Implements the built-in functions of Graphcore's compiler that have a meaning on the CPU.
#ifndef POPLAR_IPU_BUILTINS_H
#define POPLAR_IPU_BUILTINS_H

#include <arch/gc_tile_defines.h>
#include <ipu_vector_math>
#include <poplar/detail/vertex_context.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

inline unsigned __builtin_ipu_get_tile_id() { return poplar::detail::runningVertex->tile; }
inline void* __builtin_ipu_get_vertex_base() { return poplar::detail::runningVertex->vertex; }
inline bool __builtin_ipu_is_worker_mode() { return true; }
inline unsigned __builtin_ipu_get(unsigned index) {
  if (index == CSR_W_WSR__INDEX) return poplar::detail::runningVertex->worker;
  throw std::invalid_argument("__builtin_ipu_get(" + std::to_string(index) +
                              "): the CPU does not have this register of a tile. CSR_W_WSR__INDEX can be read.");
}

// A tile's counter of cycles. Here it is the host's clock in cycles of 1.33 GHz: a difference is the time of the host.
inline unsigned long long __builtin_ipu_get_scount() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return static_cast<unsigned long long>(nanoseconds) * 133 / 100;
}
inline unsigned __builtin_ipu_get_scount_l() { return static_cast<unsigned>(__builtin_ipu_get_scount()); }
inline unsigned __builtin_ipu_get_scount_u() { return static_cast<unsigned>(__builtin_ipu_get_scount() >> 32); }

// Random numbers. Integers have all bits random, _f16 and _f32 are uniform in [-0.5, 0.5), grand ones are normal.
inline unsigned long long __builtin_ipu_urand64() {
  return poplar::detail::mixBits(poplar::detail::runningVertex->random += poplar::detail::randomIncrement);
}
inline unsigned __builtin_ipu_urand32() { return static_cast<unsigned>(__builtin_ipu_urand64() >> 32); }
inline float __builtin_ipu_urand_f32() { return static_cast<float>(__builtin_ipu_urand32() >> 8) * 0x1p-24f - 0.5f; }
inline half __builtin_ipu_urand_f16() {
  return static_cast<half>(static_cast<float>(__builtin_ipu_urand32() >> 21) * 0x1p-11f - 0.5f);
}
inline float2 __builtin_ipu_f32v2grand() {
  const unsigned long long bits = __builtin_ipu_urand64();
  const float uniform = (static_cast<float>(static_cast<unsigned>(bits) >> 8) + 1) * 0x1p-24f;
  const float angle = static_cast<float>(static_cast<unsigned>(bits >> 32)) * (2 * 3.14159265f * 0x1p-32f);
  const float radius = std::sqrt(-2 * std::log(uniform));
  return float2{radius * std::cos(angle), radius * std::sin(angle)};
}
inline half2 __builtin_ipu_f16v2grand() {
  const float2 values = __builtin_ipu_f32v2grand();
  return half2{static_cast<half>(values[0]), static_cast<half>(values[1])};
}

inline half __builtin_ipu_f32tof16(float value) { return static_cast<half>(value); }
inline float __builtin_ipu_f16tof32(half value) { return static_cast<float>(value); }

#define POPLAR_IPU_BUILTIN(name, function) \
  template <typename T>                    \
  T __builtin_ipu_##name(T value) {        \
    return ipu::function(value);           \
  }
POPLAR_IPU_BUILTIN(exp, exp)
POPLAR_IPU_BUILTIN(exp2, exp2)
POPLAR_IPU_BUILTIN(ln, log)
POPLAR_IPU_BUILTIN(log2, log2)
POPLAR_IPU_BUILTIN(tanh, tanh)
POPLAR_IPU_BUILTIN(sigmoid, sigmoid)
POPLAR_IPU_BUILTIN(rsqrt, rsqrt)
#undef POPLAR_IPU_BUILTIN

template <typename T>
T __builtin_ipu_max(T first, T second) {
  return ipu::fmax(first, second);
}
template <typename T>
T __builtin_ipu_min(T first, T second) {
  return ipu::fmin(first, second);
}

// Clang's: what the optimiser may rely on.
#ifndef __clang__
#define __builtin_assume(condition) ((condition) ? static_cast<void>(0) : __builtin_unreachable())
#endif

#endif
