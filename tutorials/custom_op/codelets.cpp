// Softsign and its gradient, of the elements that lie on one tile.
#include <cmath>

#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

template <typename T>
class Softsign : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<T>> x;
  poplar::Output<poplar::Vector<T>> y;
  const float steepness;

  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      const float scaled = steepness * float(x[i]);
      y[i] = scaled / (1 + std::fabs(scaled));
    }
    return true;
  }
};

template <typename T>
class SoftsignGrad : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<T>> x;
  poplar::Input<poplar::Vector<T>> outGradient;
  poplar::Output<poplar::Vector<T>> inGradient;
  const float steepness;

  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) {
      const float below = 1 + std::fabs(steepness * float(x[i]));
      inGradient[i] = float(outGradient[i]) * steepness / (below * below);
    }
    return true;
  }
};

template class Softsign<float>;
template class Softsign<half>;
template class SoftsignGrad<float>;
template class SoftsignGrad<half>;
