// Vertices of the kinds that researchers write.
#include <ipu_memory_intrinsics>
#include <ipu_vector_math>
#include <ipudef.h>
#include <poplar/Vertex.hpp>

#include <cmath>

using namespace poplar;
static constexpr auto ONE_PTR = VectorLayout::ONE_PTR;

// The mean of four neighbours, in a band of rows with a row from each neighbouring tile.
template <typename T>
class [[poplar::constraint("elem(*in) != elem(*out)")]] Jacobi : public Vertex {
 public:
  Jacobi();
  Vector<Input<Vector<T, ONE_PTR, 8>>> in;
  Input<Vector<T, ONE_PTR, 8>> above, below;
  Vector<Output<Vector<T, ONE_PTR, 8>>> out;
  const unsigned width;
  bool compute() {
    for (unsigned row = 0; row < in.size(); ++row) {
      const T* up = row == 0 ? &above[0] : &in[row - 1][0];
      const T* down = row + 1 == in.size() ? &below[0] : &in[row + 1][0];
      for (unsigned i = 0; i < width; ++i) {
        const T left = i == 0 ? T(0) : in[row][i - 1], right = i + 1 == width ? T(0) : in[row][i + 1];
        out[row][i] = T(0.25f) * (up[i] + down[i] + left + right);
      }
    }
    return true;
  }
};
template class Jacobi<float>;
template class Jacobi<half>;

class LocalScan : public Vertex {
 public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  Output<float> total;
  void compute() {
    float sum = 0;
    for (unsigned i = 0; i < in.size(); ++i) out[i] = sum += in[i];
    *total = sum;
  }
};

class AddTotals : public Vertex {
 public:
  InOut<Vector<float>> data;
  Input<Vector<float>> totals;
  unsigned index;
  bool compute() {
    float offset = 0;
    for (unsigned i = 0; i < index; ++i) offset += totals[i];
    for (auto& value : data) value += offset;
    return true;
  }
};

class Histogram : public MultiVertex {
 public:
  Input<Vector<int, ONE_PTR>> data;
  Output<Vector<unsigned>> counts;  // a row for each worker
  const unsigned size, bins;
  bool compute(unsigned worker) {
    unsigned* mine = &counts[worker * bins];
    for (unsigned bin = 0; bin < bins; ++bin) mine[bin] = 0;
    for (unsigned i = worker; i < size; i += numWorkers())
      if (data[i] >= 0 && data[i] < static_cast<int>(bins)) ++mine[data[i]];
    return true;
  }
};

template <typename T>
class CompareSwap : public Vertex {
 public:
  InOut<T> low, high;
  void compute() {
    if (*low > *high) std::swap(*low, *high);
  }
};
template class CompareSwap<float>;
template class CompareSwap<int>;

template <typename T, unsigned Size>
class LookUp : public Vertex {
 public:
  Input<Vector<T, VectorLayout::SCALED_PTR64, 8>> table;
  Input<Vector<T, VectorLayout::SPAN, 8>> x;
  Output<Vector<T, ONE_PTR, 8>> y;
  const float low, scale;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      const float place = std::fmin(std::fmax((float(x[i]) - low) * scale, 0.0f), float(Size - 1));
      const unsigned entry = place < Size - 2 ? unsigned(place) : Size - 2;
      const float part = place - float(entry);
      y[i] = T((1 - part) * float(table[entry]) + part * float(table[entry + 1]));
    }
    return true;
  }
};
template class LookUp<float, 65>;
template class LookUp<half, 65>;

class RaggedSum : public Vertex {
 public:
  Input<VectorList<float, VectorListLayout::DELTANELEMENTS>> rows;
  Output<Vector<float>> sums;
  bool compute() {
    for (unsigned row = 0; row < rows.size(); ++row) {
      sums[row] = 0;
      for (unsigned i = 0; i < rows[row].size(); ++i) sums[row] += rows[row][i];
    }
    return true;
  }
};

// c + a b in vectors of four, the rest alone.
class Fma4 : public Vertex {
 public:
  Input<Vector<half, ONE_PTR, 8>> a, b;
  InOut<Vector<half, VectorLayout::SPAN, 8>> c;
  bool compute() {
    const half4* left = reinterpret_cast<const half4*>(&a[0]);
    const half4* right = reinterpret_cast<const half4*>(&b[0]);
    half4* sum = reinterpret_cast<half4*>(&c[0]);
    const unsigned vectors = c.size() / 4;
    for (unsigned i = 0; i < vectors; ++i) {
      const half4 x = ipu::load_postinc(&left, 1), y = ipu::load_postinc(&right, 1);
      ipu::store_postinc(&sum, ipu::fma(x, y, *sum), 1);
    }
    for (unsigned i = vectors * 4; i < c.size(); ++i) c[i] = a[i] * b[i] + c[i];
    return true;
  }
};

class SupervisorSum : public SupervisorVertex {
 public:
  Input<Vector<float>> data;
  Output<float> out;
  __attribute__((target("supervisor"))) bool compute() {
    *out = 0;
    for (unsigned i = 0; i < data.size(); ++i) *out += data[i];
    return true;
  }
};

// A step of Newton's method for square roots, and whether it moved by more than the tolerance.
class NewtonStep : public Vertex {
 public:
  Input<Vector<float>> squares;
  InOut<Vector<float>> roots;
  Output<bool> moved;
  float tolerance;
  bool compute() {
    *moved = false;
    for (unsigned i = 0; i < squares.size(); ++i) {
      const float next = 0.5f * (roots[i] + squares[i] / roots[i]);
      if (std::fabs(next - roots[i]) > tolerance * std::fabs(next)) *moved = true;
      roots[i] = next;
    }
    return true;
  }
};

// The best state before a state, as Viterbi's algorithm finds it.
class BestState : public Vertex {
 public:
  Input<Vector<float>> scores, into;
  Input<float> emission;
  Output<float> score;
  Output<unsigned> before;
  bool compute() {
    *before = 0;
    *score = scores[0] + into[0];
    for (unsigned i = 1; i < scores.size(); ++i)
      if (scores[i] + into[i] > *score) {
        *score = scores[i] + into[i];
        *before = i;
      }
    *score += emission;
    return true;
  }
};
