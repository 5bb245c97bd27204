// Vertices that use the functions that compilers for IPUs have built in.
#include <arch/gc_tile_defines.h>
#include <ipu_builtins.h>
#include <ipu_vector_math>
#include <ipudef.h>
#include <poplar/Vertex.hpp>

#include <utility>

using namespace poplar;

class Draw : public Vertex {
 public:
  Output<Vector<float>> uniform, normal;
  Output<Vector<unsigned>> bits;
  Output<unsigned> tile;
  void compute() {
    *tile = __builtin_ipu_get_tile_id();
    for (unsigned i = 0; i < uniform.size(); ++i) {
      uniform[i] = i % 2 ? __builtin_ipu_urand_f32() : static_cast<float>(__builtin_ipu_urand_f16());
      bits[i] = __builtin_ipu_urand32();
    }
    for (unsigned i = 0; i < normal.size(); i += 2) {
      const float2 pair = __builtin_ipu_f32v2grand();
      normal[i] = pair[0];
      normal[i + 1] = pair[1];
    }
  }
};

class DrawByWorkers : public MultiVertex {
 public:
  Output<Vector<unsigned>> bits;
  void compute(unsigned worker) {
    if (__builtin_ipu_is_worker_mode()) bits[worker] = __builtin_ipu_urand32();
  }
};

// The sum by workers, whose numbers are read from a register.
class SumByWorkers : public MultiVertex {
 public:
  Input<Vector<const unsigned>> in;
  Output<Vector<unsigned>> sums;
  Output<Vector<unsigned>> clocks;
  void compute(unsigned) {
    const unsigned worker = __builtin_ipu_get(CSR_W_WSR__INDEX) & CSR_W_WSR__CTXTID_M1__MASK;
    const unsigned start = __builtin_ipu_get_scount_l();
    sums[worker] = 0;
    for (rptsize_t i = worker; i < in.size(); i += CTXT_WORKERS) sums[worker] += in[i];
    clocks[worker] = __builtin_ipu_get_scount_l() - start;
  }
};

class ReadsRegister : public Vertex {
 public:
  Output<unsigned> value;
  void compute() { *value = __builtin_ipu_get(1); }
};

class Quantise : public Vertex {
 public:
  Input<Vector<half, VectorLayout::SPAN, 8>> in;
  Output<Vector<half, VectorLayout::SPAN, 8>> out;
  half limit;
  void compute() {
    __builtin_assume(in.size() % 4 == 0);
    const unsigned short mask = 0x3f;
    const half low = *reinterpret_cast<const half*>(&mask);
    for (unsigned i = 0; i < in.size(); i += 4) {
      const half4 values = ipu::clamp(*reinterpret_cast<const half4*>(&in[i]), half2{static_cast<half>(-limit), limit});
      *reinterpret_cast<half4*>(&out[i]) = ipu::andc(values, half4{low, low, low, low});
    }
  }
};

class Functions : public Vertex {
 public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  void compute() {
    out[0] = __builtin_ipu_exp(in[0]);
    out[1] = __builtin_ipu_ln(in[0]);
    out[2] = __builtin_ipu_max(in[0], in[1]);
    out[3] = __builtin_ipu_min(in[0], in[1]);
    out[4] = __builtin_ipu_f16tof32(__builtin_ipu_f32tof16(in[0]));
    out[5] = ipu::clamp(in[0], float2{-1.0f, 0.25f});
  }
};

// A type that clang's attribute defines, and the members and conversions of short vectors.
typedef float pair __attribute__((ext_vector_type(2)));
class ShortVectors : public Vertex {
 public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  void compute() {
    const pair first{in[0], in[1]};
    float2 sum = first * 2 - first / float2{4.0f, 8.0f};
    sum.y += first.x;
    const half4 narrow{in[0], in[1], sum.x};
    const float4 wide = __builtin_convertvector(narrow * narrow, float4);
    const int2 smaller = first < sum;
    const bool is_base = __builtin_ipu_get_vertex_base() == this;
    auto& [left, right] = sum;
    std::swap(left, right);
    const auto [x, y, z, w] = wide;
    const auto [half_x, half_y] = half2{in[0], in[1]} * half2{2, 4};
    const float values[] = {sum.y,  sum.x,   y, z, w, float(smaller.x), float(smaller[1]), float(is_base), x, half_x,
                            half_y};
    for (unsigned i = 0; i < out.size(); ++i) out[i] = values[i];
  }
};

// Outputs are assigned to by their names.
class Assigned : public Vertex {
 public:
  Input<Vector<float>> in;
  Vector<InOut<float>> out;
  void compute() {
    out[0] = in[0];
    out[1] = out[0];
    out[1] += in[1];
    out[0] = 7;
  }
};
