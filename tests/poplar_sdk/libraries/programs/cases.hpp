// Cases: small graphs of library functions that are run on generated inputs. Inputs and outputs are written to a file,
// and the test compares the outputs with NumPy's.
#pragma once

#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <sstream>
#include <string>
#include <vector>

using namespace poplar;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

class Case {
 public:
  Case(std::string name, std::ofstream &index, std::ofstream &data)
      : device(model().createDevice()), graph(device), name_(std::move(name)), index_(index), data_(data) {}

  // A tensor of the values from `low` to `high`, mapped to one tile.
  Tensor input(const std::string &name, const Type &type, const Shape &shape, double low = -2, double high = 2) {
    std::vector<double> values;
    std::size_t count = 1;
    for (auto size : shape) count *= size;
    for (std::size_t i = 0; i != count; ++i) {
      state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
      values.push_back(low + (high - low) * double(state_ >> 40) / double(1 << 24));
    }
    return data(name, type, shape, values);
  }

  Tensor data(const std::string &name, const Type &type, const Shape &shape, const std::vector<double> &values) {
    const auto tensor = graph.addVariable(type, shape, name);
    graph.setTileMapping(tensor, inputs_.size() % graph.getTarget().getNumTiles());
    graph.createHostWrite(name, tensor);
    std::vector<char> bytes(values.size() * graph.getTarget().getTypeSize(type));
    for (std::size_t i = 0; i != values.size(); ++i) store(type, values[i], bytes.data(), i);
    inputs_.push_back({name, tensor, bytes});
    return tensor;
  }

  void output(const std::string &name, const Tensor &tensor) {
    graph.createHostRead(name, tensor);
    outputs_.push_back({name, tensor, std::vector<char>(tensor.numElements() *
                                                        graph.getTarget().getTypeSize(tensor.elementType()))});
  }

  void run() {
    Engine engine(stored());
    engine.load(device);
    for (auto &input : inputs_) engine.writeTensor(input.name, input.bytes.data(), input.bytes.data() + input.bytes.size());
    engine.run(0);
    for (auto &output : outputs_)
      engine.readTensor(output.name, output.bytes.data(), output.bytes.data() + output.bytes.size());
    for (auto &input : inputs_) write("input", input);
    for (auto &output : outputs_) write("output", output);
  }

  // Whether the call throws an exception; its message becomes an output.
  void error(const std::string &name, const std::function<void()> &call) {
    std::string text;
    try {
      call();
    } catch (const std::exception &error) {
      text = error.what();
    }
    for (auto &c : text)
      if (c == '\n') c = ' ';
    index_ << name_ << '\t' << "error" << '\t' << name << '\t' << text << '\n';
  }

  Device device;
  Graph graph;
  Sequence prog;

 private:
  struct Value {
    std::string name;
    Tensor tensor;
    std::vector<char> bytes;
  };

  // The executable, as another process reads it from its file.
  Executable stored() {
    std::stringstream file;
    compileGraph(graph, {prog}).serialize(file);
    return Executable::deserialize(file);
  }

  static IPUModel model() {
    IPUModel result;
    result.tilesPerIPU = 16;
    return result;
  }

  template <class T>
  static void put(double value, char *to, std::size_t i) {
    const T element = static_cast<T>(value);
    std::memcpy(to + i * sizeof(T), &element, sizeof(T));
  }

  static void store(const Type &type, double value, char *to, std::size_t i) {
    if (type == FLOAT) put<float>(value, to, i);
    else if (type == HALF) put<_Float16>(value, to, i);
    else if (type == INT) put<int>(value, to, i);
    else if (type == UNSIGNED_INT) put<unsigned>(value, to, i);
    else if (type == SHORT) put<short>(value, to, i);
    else if (type == UNSIGNED_SHORT) put<unsigned short>(value, to, i);
    else if (type == UNSIGNED_CHAR) put<unsigned char>(value, to, i);
    else if (type == LONGLONG) put<long long>(value, to, i);
    else if (type == BOOL) put<char>(value > 0, to, i);
    else throw std::runtime_error("the test has no inputs of this type");
  }

  void write(const char *role, const Value &value) {
    index_ << name_ << '\t' << role << '\t' << value.name << '\t' << value.tensor.elementType() << '\t'
           << data_.tellp() << '\t';
    for (auto size : value.tensor.shape()) index_ << size << ' ';
    index_ << '\n';
    data_.write(value.bytes.data(), value.bytes.size());
  }

  std::string name_;
  std::ofstream &index_, &data_;
  std::vector<Value> inputs_, outputs_;
  std::uint64_t state_ = 42;
};

struct NamedCase {
  std::string name;
  std::function<void(Case &)> build;
};
