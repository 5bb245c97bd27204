// Holds compiled programs, which can be written to a file and read again.
#ifndef poplar_Executable_hpp
#define poplar_Executable_hpp

#include <istream>
#include <memory>
#include <ostream>
#include <utility>

namespace poplar {

namespace detail {
struct Compiled;
}

class Executable {
 public:
  Executable() = default;
  explicit Executable(std::shared_ptr<const detail::Compiled> compiled) : compiled_(std::move(compiled)) {}
  Executable(Executable&&) noexcept = default;
  Executable& operator=(Executable&&) noexcept = default;

  // Writes the graph, its codelets and its programs. Only a process with the same build of the libraries reads them.
  void serialize(std::ostream& out) const;
  static Executable deserialize(std::istream& in, bool checkPackageHash = true);
  static Executable deserialize(std::unique_ptr<std::istream> in, bool checkPackageHash = true) {
    return deserialize(*in, checkPackageHash);
  }

  const std::shared_ptr<const detail::Compiled>& compiled() const { return compiled_; }

 private:
  std::shared_ptr<const detail::Compiled> compiled_;
};

}  // namespace poplar

#endif
