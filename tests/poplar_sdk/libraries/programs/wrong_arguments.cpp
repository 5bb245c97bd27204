// Prints the outcome of each call with one wrong argument: call, argument, change, outcome, exception and message.
// The arguments choose from the calls by the beginnings of their names.
#include "wrong_graph_calls.hpp"
#include "wrong_layer_calls.hpp"
#include "wrong_popops_calls.hpp"

int main(int count, char **names) {
  const auto isChosen = [&](const Attempt &call) {
    const auto begins = [&](const char *name) { return call.name.rfind(name, 0) == 0; };
    return count == 1 || std::any_of(names + 1, names + count, begins);
  };
  for (const auto *calls : {&wrong::graphCalls(), &wrong::popopsCalls(), &wrong::layerCalls()}) {
    std::vector<Attempt> chosen;
    std::copy_if(calls->begin(), calls->end(), std::back_inserter(chosen), isChosen);
    wrong::makeAll(chosen);
  }
}
