// Runs the cases of the libraries and writes their inputs and outputs: libraries INDEX DATA.
#include "callers_cases.hpp"
#include "elementwise_cases.hpp"
#include "layer_cases.hpp"
#include "nn_cases.hpp"
#include "option_cases.hpp"
#include "popops_cases.hpp"
#include "region_cases.hpp"
#include "sparse_cases.hpp"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

int main(int, char **arguments) {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // subnormal numbers count as zero, as in TensorFlow's threads
#endif
  std::ofstream index(arguments[1]), data(arguments[2], std::ios::binary);
  for (const auto &part : {elementwiseCases(), popopsCases(), nnCases(), layerCases(), optionCases(), sparseCases(),
                           callersCases(), regionCases()}) {
    for (const auto &named : part) {
      try {
        Case c(named.name, index, data);
        named.build(c);
        c.run();
      } catch (const std::exception &error) {
        index << named.name << "\terror\tthe case\t" << error.what() << '\n';
      }
    }
  }
}
