// Vertices of the ops of networks that are trained.
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

#include <cmath>

using namespace poplar;

// Leaky neurons that fire above a threshold; a worker has every sixth.
template <typename T>
class Neurons : public MultiVertex {
 public:
  Input<Vector<T, VectorLayout::ONE_PTR>> current;
  Input<Vector<T, VectorLayout::ONE_PTR>> decay;
  InOut<Vector<T, VectorLayout::ONE_PTR>> potential;
  Output<Vector<T, VectorLayout::SPAN>> fired;
  const float threshold;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < fired.size(); i += numWorkers()) {
      const float kept = float(decay[i]);
      const float reached = kept * float(potential[i]) + (1 - kept) * float(current[i]);
      fired[i] = reached > threshold ? 1 : 0;
      potential[i] = reached > threshold ? 0 : reached;
    }
    return true;
  }
};
template class Neurons<float>;
template class Neurons<half>;

// Weights take steps of one size, by the signs of a mean of gradients. It has no result: later releases allow void.
template <typename T>
class SignStep : public Vertex {
 public:
  InOut<Vector<T>> weights;
  InOut<Vector<float>> mean;
  Input<Vector<T>> gradient;
  Input<float> rate;
  const float first, second;

  void compute() {
    for (unsigned i = 0; i < weights.size(); ++i) {
      const float direction = first * mean[i] + (1 - first) * float(gradient[i]);
      weights[i] = T(float(weights[i]) - *rate * ((direction > 0) - (direction < 0)));
      mean[i] = second * mean[i] + (1 - second) * float(gradient[i]);
    }
  }
};
template class SignStep<float>;
template class SignStep<half>;

// Turns the halves of rows of different positions by angles.
class Rotary : public Vertex {
 public:
  Vector<Input<Vector<float>>> rows;
  Vector<Output<Vector<float>>> turned;
  Input<Vector<int>> positions;
  float sign;

  bool compute() {
    for (unsigned row = 0; row < rows.size(); ++row) {
      const unsigned half = rows[row].size() / 2;
      for (unsigned i = 0; i < half; ++i) {
        const float angle = sign * positions[row] * std::pow(100.0f, -float(i) / half);
        const float x = rows[row][i], y = rows[row][i + half];
        turned[row][i] = x * std::cos(angle) - y * std::sin(angle);
        turned[row][i + half] = x * std::sin(angle) + y * std::cos(angle);
      }
    }
    return true;
  }
};

// Boxes of an image, best first, without those that overlap a better one.
class Suppression : public Vertex {
 public:
  Input<Vector<float, VectorLayout::ONE_PTR>> boxes;
  InOut<Vector<float>> scores;
  Output<Vector<int>> kept;
  Output<int> count;
  const float overlap;

  float overlapOf(const float* a, const float* b) const {
    const float height = std::fmax(0.0f, std::fmin(a[2], b[2]) - std::fmax(a[0], b[0]));
    const float width = std::fmax(0.0f, std::fmin(a[3], b[3]) - std::fmax(a[1], b[1]));
    const float common = height * width;
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common);
  }
  bool compute() {
    *count = 0;
    for (unsigned place = 0; place < kept.size(); ++place) {
      int best = -1;
      for (unsigned i = 0; i < scores.size(); ++i)
        if (scores[i] > 0 && (best < 0 || scores[i] > scores[best])) best = i;
      kept[place] = best;
      if (best < 0) continue;
      ++*count;
      scores[best] = 0;
      for (unsigned i = 0; i < scores.size(); ++i)
        if (overlapOf(&boxes[4 * best], &boxes[4 * i]) > overlap) scores[i] = 0;
    }
    return true;
  }
};
