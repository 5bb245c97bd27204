// Writes executables and graphs to files, and reads executables. A file has a head, the libraries that the steps of
// programs are from, and the data.
#include "poplar/engine/plan.hpp"
#include "poplar/storage/graph_fields.hpp"

#include <poplar/Executable.hpp>

#include <dlfcn.h>
#include <link.h>

#include <fstream>
#include <iterator>

namespace poplar {

using namespace detail;

namespace {

constexpr char magic[] = "tf_ipu_shim Poplar 1\n";
enum class Content : std::uint64_t { Executable = 1, Graph = 2 };

struct Head {
  Content content;
  std::uint64_t length, digest;
};

std::uint64_t digestOf(const std::string& data) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char byte : data) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return digest;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string fileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A library of the writer: its name, and the digest of its code.
struct Library {
  std::string name;
  std::uint64_t digest = 0;
};
template <class Archive>
void transferFields(Archive& archive, Library& library) {
  transfer(archive, library.name, library.digest);
}

// A library that this process has loaded; empty if it has not.
struct Loaded {
  std::string name, path;
  char* base = nullptr;
};

Loaded findLoaded(const std::string& name) {
  Loaded found{name, {}, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        auto& library = *static_cast<Loaded*>(to);
        if (fileName(info->dlpi_name) != library.name) return 0;
        library.path = info->dlpi_name;
        library.base = reinterpret_cast<char*>(info->dlpi_addr);
        return 1;
      },
      &found);
  return found;
}

void writeFile(std::ostream& out, Content content, const GraphWriter& data) {
  Writer file;
  std::vector<Library> libraries;
  for (const auto& path : data.libraries()) libraries.push_back({fileName(path), digestOf(contentOf(path))});
  write(file, libraries);
  file.bytes(data.data().data(), data.data().size());
  const Head head{content, file.data().size(), digestOf(file.data())};
  out.write(magic, sizeof magic - 1);
  out.write(reinterpret_cast<const char*>(&head), sizeof head);
  out.write(file.data().data(), static_cast<std::streamsize>(file.data().size()));
  if (!out) throw poplar_error("serialize: the stream cannot be written. Check the path and the free space of its disk.");
}

[[noreturn]] void refuse(const std::string& what, const std::string& advice) {
  throw poplar_error("Executable::deserialize: " + what + ". " + advice + ".");
}

// Where each library of the file is in this process.
std::vector<char*> basesOf(const std::vector<Library>& libraries) {
  std::vector<char*> bases;
  for (const auto& [name, digest] : libraries) {
    const Loaded found = findLoaded(name);
    if (!found.base) refuse("the executable needs " + name + ", which this program has not loaded", "Link the program with it");
    if (digestOf(contentOf(found.path)) != digest)
      refuse("the executable was made with another build of " + name, "Compile the program again with compileGraph");
    bases.push_back(found.base);
  }
  return bases;
}

std::string readContent(std::istream& in) {
  std::string start(sizeof magic - 1, '\0');
  Head head{};
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (!in || start != magic)
    refuse("the stream has no executable of this Poplar; those of real IPUs cannot run here",
           "Write one with Executable::serialize in this environment");
  in.read(reinterpret_cast<char*>(&head), sizeof head);
  std::string data;
  std::vector<char> part(std::size_t{1} << 20);
  while (in && data.size() < head.length) {
    in.read(part.data(), static_cast<std::streamsize>(std::min<std::uint64_t>(part.size(), head.length - data.size())));
    data.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (data.size() != head.length || digestOf(data) != head.digest)
    refuse("the executable is damaged: its length or checksum is not that of its head", "Write it again");
  if (head.content != Content::Executable)
    refuse("the stream has a graph without programs", "Write one with Executable::serialize");
  return data;
}

}  // namespace

void Executable::serialize(std::ostream& out) const {
  if (!compiled_) throw poplar_error("Executable::serialize: the executable is empty. Pass one of compileGraph.");
  GraphWriter writer;
  writer.graph = compiled_->graph;
  write(writer, *compiled_->graph);
  write(writer, compiled_->sources);
  writeFile(out, Content::Executable, writer);
}

Executable Executable::deserialize(std::istream& in, bool) {
  std::string data = readContent(in);
  Reader head(data, {});
  std::vector<Library> libraries;
  transfer(head, libraries);
  GraphReader reader(std::move(data), basesOf(libraries));
  transfer(reader, libraries);
  std::vector<program::Program> programs;
  transfer(reader, *reader.graph, programs);
  return Executable(compileProgram(reader.graph, programs));
}

namespace detail {

void writeGraph(std::ostream& out, const std::shared_ptr<GraphState>& graph) {
  GraphWriter writer;
  writer.graph = graph;
  write(writer, *graph);
  writeFile(out, Content::Graph, writer);
}

}  // namespace detail

}  // namespace poplar
