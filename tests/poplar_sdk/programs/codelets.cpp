// Vertices of the tests of the engine.
#include <poplar/Vertex.hpp>

#include <stdexcept>

using namespace poplar;

template <typename T>
class Scale : public Vertex {
 public:
  Input<Vector<T>> in;
  Output<Vector<T>> out;
  T factor;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = in[i] * factor;
    return true;
  }
};
template class Scale<float>;
template class Scale<half>;

// Adds the rows of a matrix; each call counts in the vertex's own state.
class AddRows : public Vertex {
 public:
  Vector<Input<Vector<float>>> rows;
  InOut<Vector<float>> sums;
  Output<int> calls;
  int count = 0;
  void compute() {
    for (unsigned row = 0; row < rows.size(); ++row)
      for (unsigned i = 0; i < sums.size(); ++i) sums[i] += rows[row][i];
    *calls = ++count;
  }
  uint64_t getCycleEstimate() const { return 10 + rows.size() * sums.size(); }
};

class Below : public Vertex {
 public:
  Input<unsigned> value;
  unsigned limit;
  bool compute() { return *value < limit; }
};

class Increment : public Vertex {
 public:
  InOut<unsigned> value;
  Vector<unsigned> steps;
  void compute() {
    for (unsigned i = 0; i < steps.size(); ++i) *value += steps[i];
  }
};

class WorkerIds : public MultiVertex {
 public:
  Output<Vector<unsigned>> out;
  void compute(unsigned worker) {
    for (unsigned i = worker; i < out.size(); i += numWorkers()) out[i] = worker;
  }
};

class Thrower : public Vertex {
 public:
  Input<float> in;
  void compute() { throw std::runtime_error("no luck"); }
};
