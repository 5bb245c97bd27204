// Codelets of the ops of tests/poplar_sdk/sources/ops.cc.
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

template <typename T>
class Turn : public Vertex {
 public:
  Input<Vector<T>> x, y, angle;
  Output<Vector<T>> x_turned, y_turned;
  bool compute() {
    for (unsigned i = 0; i < angle.size(); ++i) {
      const float c = std::cos(float(angle[i])), s = std::sin(float(angle[i]));
      x_turned[i] = float(x[i]) * c - float(y[i]) * s;
      y_turned[i] = float(x[i]) * s + float(y[i]) * c;
    }
    return true;
  }
};
template class Turn<float>;
template class Turn<half>;

class AddTo : public Vertex {
 public:
  InOut<Vector<float>> sum;
  Input<Vector<float>> part;
  float scale;
  bool compute() {
    for (unsigned i = 0; i < part.size(); ++i) sum[i] = sum[i] + scale * part[i];
    return true;
  }
};

// result = scale * a * b
class Times : public Vertex {
 public:
  Input<Vector<float>> a, b;
  Output<Vector<float>> result;
  float scale;
  void compute() {
    for (unsigned i = 0; i < a.size(); ++i) result[i] = scale * a[i] * b[i];
  }
#ifdef ESTIMATES
  unsigned getCycleEstimate() const { return 1000 + a.size(); }
#endif
};

class Throws : public Vertex {
 public:
  Input<Vector<float>> a;
  Output<Vector<float>> result;
  bool compute() { throw std::runtime_error("the vertex refuses"); }
};

class Crashes : public Vertex {
 public:
  Input<Vector<float>> a;
  Output<Vector<float>> result;
  bool compute() { std::abort(); }
};
