// Calls of functions with one wrong argument: the arguments of a right call are changed one by one. Calls are made in a
// child process, and a call's program is run if it is accepted.
#pragma once

#include <poplar/Device.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

using namespace poplar;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

// Makes the arguments of one call. Argument `changed` is replaced by its change number `change`.
class Arguments {
 public:
  Arguments(int changed, int change)
      : graph(Target::createIPUTarget(2, 8, "ipu2")), other(Target::createIPUTarget(2, 8, "ipu2")), changed_(changed),
        change_(change) {}

  Tensor tensor(const Type &type, const Shape &shape) {
    const auto good = made(graph, type, shape);
    switch (next(8)) {
      case 0: return say("an empty Tensor()", Tensor());
      case 1: return say("a tensor of another graph", foreign(type, shape));
      case 2: return say("rank + 1", made(graph, type, grown(shape)));
      case 3: return shape.size() < 2 ? good : say("flattened", good.flatten());
      case 4: return say("another type", made(graph, type == FLOAT ? INT : FLOAT, shape));
      case 5: return shape.empty() ? good : say("one longer", made(graph, type, longer(shape)));
      case 6: return shape.empty() ? good : say("no elements", made(graph, type, emptied(shape)));
      case 7: return say("64 bits", made(graph, LONGLONG, shape));
      default: return good;
    }
  }
  template <class T>
  T number(T good) {
    switch (next(4)) {
      case 0: return say("0", T(0));
      case 1: return say("10", T(10));
      case 2: return say("2^31 - 1", T((1u << 31) - 1));
      case 3: return say("largest", std::numeric_limits<T>::max());
      default: return good;
    }
  }
  template <class T = std::size_t>
  std::vector<T> numbers(std::vector<T> good) {
    switch (next(5)) {
      case 0: return say("no numbers", std::vector<T>());
      case 1: good.push_back(1); return say("one number more", good);
      case 2: for (auto &one : good) one = std::numeric_limits<T>::max(); return say("largest", good);
      case 3: for (auto &one : good) one = 0; return say("zeros", good);
      case 4: for (auto &one : good) one = 10; return say("tens", good);
      default: return good;
    }
  }
  Type type(const Type &good) {
    switch (next(3)) {
      case 0: return say("Type()", Type());
      case 1: return say("bool", BOOL);
      case 2: return say("long long", LONGLONG);
      default: return good;
    }
  }
  OptionFlags options() { return next(1) == 0 ? say("an unknown option", OptionFlags{{"noSuchOption",
     "1"}}) : OptionFlags(); }

  // The number of changes of each argument.
  const std::vector<int> &changes() const { return changes_; }
  const std::string &what() const { return what_; }

  Graph graph;
  Sequence prog;

 private:
  int next(int changes) {
    changes_.push_back(changes);
    return static_cast<int>(changes_.size()) - 1 == changed_ ? change_ : -1;
  }
  template <class T>
  T say(const char *what, T value) {
    what_ = what;
    return value;
  }
  static Tensor made(Graph &graph, const Type &type, const Shape &shape) {
    const auto tensor = graph.addVariable(type, shape, "argument");
    graph.setTileMapping(tensor, 0);
    return tensor;
  }
  // With more variables before it than the graph of the call has.
  Tensor foreign(const Type &type, const Shape &shape) {
    for (int i = 0; i < 50; ++i) other.addVariable(FLOAT, {3});
    return made(other, type, shape);
  }
  static Shape grown(Shape shape) {
    shape.push_back(1);
    return shape;
  }
  static Shape longer(Shape shape) {
    ++shape.back();
    return shape;
  }
  static Shape emptied(Shape shape) {
    shape.front() = 0;
    return shape;
  }

  Graph other;
  int changed_, change_;
  std::vector<int> changes_;
  std::string what_;
};

struct Attempt {
  std::string name;
  std::function<void(Arguments &)> make;
};

namespace wrong {

inline std::string typeName(const std::exception &error) {
  int status = 0;
  char *text = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
  const std::string name = text ? text : "?";
  std::free(text);
  return name;
}

inline std::string outcome(Arguments &arguments, const Attempt &call) {
  try {
    call.make(arguments);
    Engine engine(arguments.graph, arguments.prog);
    engine.load(Device(0, arguments.graph.getTarget()));
    engine.run();
  } catch (const stream_connection_error &) {  // only of streams and functions that no call connects
  } catch (const poplar_error &error) {
    return "refused\t" + typeName(error) + "\t" + error.what();
  } catch (const std::exception &error) {
    const bool is_known = typeName(error) == "poputil::poplibs_error";
    return (is_known ? "refused\t" : "foreign\t") + typeName(error) + "\t" + error.what();
  }
  return "accepted\t\t";
}

struct Change {
  int argument, number;
};

// Makes a call with each change from one on in a child process, until it dies; returns how many it made.
inline std::size_t makeFrom(std::size_t first, const std::vector<Change> &changes, const Attempt &call) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit memory{rlim_t{8} << 30, rlim_t{8} << 30}, seconds{60, 60};
    if (!std::getenv("ASAN_OPTIONS")) setrlimit(RLIMIT_AS, &memory);  // its shadow needs more
    setrlimit(RLIMIT_CPU, &seconds);
    for (; first < changes.size(); ++first) {
      Arguments arguments(changes[first].argument, changes[first].number);
      std::string text = outcome(arguments, call);
      for (auto &c : text)
        if (c == '\n') c = ' ';
      text = call.name + "\t" + std::to_string(changes[first].argument) + "\t" + arguments.what() + "\t" + text + "\n";
      if (write(ends[1], text.data(), text.size()) < 0) std::abort();
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t size; (size = read(ends[0], part, sizeof part)) > 0;) text.append(part, size);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  std::cout << text;
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Makes each call with its right arguments, and once with each change of each argument.
inline void makeAll(const std::vector<Attempt> &calls) {
  for (const Attempt &call : calls) {
    Arguments right(-1, 0);
    std::cout << call.name << "\t-\t\t" << outcome(right, call) << '\n';
    std::vector<Change> changes;
    for (std::size_t argument = 0; argument < right.changes().size(); ++argument)
      for (int number = 0; number < right.changes()[argument]; ++number)
        changes.push_back({static_cast<int>(argument), number});
    for (std::size_t made = 0; made < changes.size(); ++made) {
      made += makeFrom(made, changes, call);
      if (made < changes.size())
        std::cout << call.name << '\t' << changes[made].argument << '\t' << changes[made].number << "\tcrashed\t\t\n";
    }
  }
}

}  // namespace wrong
