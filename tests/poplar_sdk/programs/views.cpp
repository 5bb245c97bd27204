// Applies the view operations of standard input to variables whose elements are numbered, and prints each result.
//
// A line is one case: operations with their numbers. `variable` pushes a tensor; other operations change the last one;
// `concat` and `append` join the last two.
#include <poplar/Graph.hpp>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace poplar;

namespace {

class Machine {
 public:
  Machine() : graph_(Target::createIPUTarget(1, 4, "ipu2")) {}

  void apply(const std::string& name, std::istringstream& in) {
    if (name == "variable") return push(in);
    Tensor& top = tensors_.back();
    if (name == "reshape") top = top.reshape(list<std::size_t>(in));
    else if (name == "flatten") top = top.flatten();
    else if (name == "transpose") top = top.transpose();
    else if (name == "dimShuffle") top = top.dimShuffle(list<unsigned>(in));
    else if (name == "expand") top = top.expand(list<std::size_t>(in));
    else if (name == "squeeze") top = top.squeeze(list<std::size_t>(in));
    else if (name == "concat" || name == "append") join(name, number(in));
    else if (name == "slice") {
      const unsigned begin = number(in), end = number(in);
      top = top.slice(begin, end, number(in));
    } else if (name == "index") top = top[number(in)];
    else if (name == "reverse") top = top.reverse(number(in));
    else applyTwo(name, top, number(in), in);
  }

  static void applyTwo(const std::string& name, Tensor& top, unsigned value, std::istringstream& in) {
    const unsigned dimension = number(in);
    if (name == "dimRoll") top = top.dimRoll(value, dimension);
    else if (name == "subSample") top = top.subSample(value, dimension);
    else if (name == "broadcast") top = top.broadcast(value, dimension);
    else if (name == "upsample") top = top.upsample(value, dimension);
    else throw std::runtime_error("unknown operation " + name);
  }

  void print() const {
    const Tensor& top = tensors_.back();
    for (std::size_t size : top.shape()) std::cout << size << ' ';
    std::cout << "|";
    for (const auto& region : top.getVarRegions())
      for (std::size_t i = region.interval.begin(); i < region.interval.end(); ++i)
        std::cout << ' ' << starts_[region.var.id()] + i;
    std::cout << " | " << top.containsAliases() << ' ' << top.isContiguous() << " |";
    for (const auto& region : top.getContiguousRegions()) std::cout << ' ' << region.begin() << ' ' << region.end();
    std::cout << '\n';
  }

 private:
  void push(std::istringstream& in) {
    tensors_.push_back(graph_.addVariable(FLOAT, list<std::size_t>(in)));
    starts_.push_back(next_);
    next_ += tensors_.back().numElements();
  }
  void join(const std::string& name, unsigned dimension) {
    const Tensor second = tensors_.back();
    tensors_.pop_back();
    Tensor& first = tensors_.back();
    first = name == "concat" ? concat(first, second, dimension) : append(first, second, dimension);
  }
  static unsigned number(std::istringstream& in) {
    unsigned value = 0;
    in >> value;
    return value;
  }
  template <class T>
  static std::vector<T> list(std::istringstream& in) {
    std::vector<T> values(number(in));
    for (auto& value : values) value = number(in);
    return values;
  }

  Graph graph_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> starts_;
  std::size_t next_ = 0;
};

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Machine machine;
    std::istringstream in(line);
    try {
      for (std::string name; in >> name;) machine.apply(name, in);
      machine.print();
    } catch (const poplar_error& error) {
      std::cout << "error: " << error.what() << '\n';
    }
  }
}
