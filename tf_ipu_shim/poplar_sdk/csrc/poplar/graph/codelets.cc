// Loads codelets: compiles sources by popc, and registers the vertices of .gp files.
#include "poplar/graph/elf_file.hpp"
#include "poplar/graph/state.hpp"

#include <poplar/detail/vertex_table.hpp>

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>

namespace poplar {

namespace detail {

namespace {

std::string realPath(const std::string& path) {
  std::array<char, PATH_MAX> resolved;
  if (!realpath(path.c_str(), resolved.data()))
    throw file_load_error("addCodelets: '" + path + "' cannot be read: " + std::strerror(errno) +
                          ". Pass the path of a codelet file; relative ones start at the working directory.");
  return resolved.data();
}

// Loading is running: a file that any user can change is refused.
void checkTrusted(const std::string& path) {
  struct stat file {}, folder {};
  const std::string parent = path.substr(0, path.rfind('/') + 1);
  const bool open_file = stat(path.c_str(), &file) == 0 && (file.st_mode & S_IWOTH);
  const bool open_folder =
      stat(parent.c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) && !(folder.st_mode & S_ISVTX);
  if (open_file || open_folder)
    throw graph_object_load_error("addCodelets: '" + path + "' can be changed by every user of this system; loading it " +
                                  "would run their code. Take write permission from others (chmod o-w).");
}

// A directory that only this user can use, deleted with its files.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    const char* place = std::getenv("TMPDIR");
    std::string name = std::string(place && *place ? place : "/tmp") + "/poplar-codelets-XXXXXX";
    if (!mkdtemp(name.data()))
      throw graph_program_compilation_error("addCodelets: '" + name + "' cannot be created: " + std::strerror(errno) +
                                            ". Set TMPDIR to a directory that can be written.");
    path_ = name;
  }
  ~ScratchDirectory() {
    for (const auto& file : {source(), output()}) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string source() const { return path_ + "/codelets.cpp"; }
  std::string output() const { return path_ + "/codelets.gp"; }

 private:
  std::string path_;
};

std::string popcCommand() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&popcCommand), &library) && library.dli_fname) {
    const std::string path = realPath(library.dli_fname);
    const std::string prefix = path.substr(0, path.rfind('/', path.rfind('/') - 1));
    const std::string beside = prefix + "/bin/popc";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "popc";  // on PATH
}

// Runs a command without a shell; returns its exit status and output.
std::pair<int, std::string> runCommand(std::vector<std::string> words) {
  int ends[2];
  if (pipe(ends) != 0) throw graph_program_compilation_error(std::string("popc: no pipe: ") + std::strerror(errno));
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t count = read(ends[0], part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    output.append(part.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {child < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128, output};
}

void compile(const std::string& source, const std::string& shown, const std::string& flags, const std::string& to,
             std::ostream& output) {
  std::vector<std::string> words{popcCommand(), source, "-o", to};
  std::istringstream in(flags);
  for (std::string flag; in >> flag;) words.push_back(flag);
  const auto [status, text] = runCommand(words);
  output << text;
  if (status == 127)
    throw graph_program_compilation_error("addCodelets: the command popc was not found, so '" + shown +
                                          "' cannot be compiled. Run the program in the environment of "
                                          "`tf-ipu poplar --shell`, or pass a .gp file.");
  if (status != 0)
    throw graph_program_compilation_error("addCodelets: popc failed for '" + shown + "' with exit status " +
                                          std::to_string(status) + ". Fix the errors:\n" + text);
}

CodeletLibrary load(const std::string& shown, const std::string& path) {
  if (const std::string reason = missingBytes(path); !reason.empty())
    throw graph_object_load_error("addCodelets: '" + path + "' cannot be loaded: " + reason + ". Compile it again with popc.");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw graph_object_load_error("addCodelets: '" + path + "' cannot be loaded: " + dlerror() +
                                  ". Compile it with this environment's popc.");
  auto* function = reinterpret_cast<const VertexTable* (*)()>(dlsym(library, vertexTableFunction));
  if (!function)
    throw graph_object_load_error("addCodelets: '" + path + "' has no vertex table: it was not made by this environment's " +
                                  "popc. Compile its source again.");
  const VertexTable* table = function();
  if (table->version != vertexTableVersion)
    throw graph_object_load_error("addCodelets: '" + path + "' has a vertex table of version " +
                                  std::to_string(table->version) + "; expected " + std::to_string(vertexTableVersion) +
                                  ". Compile its source again with popc.");
  std::ifstream file(path, std::ios::binary);
  return {shown, table, {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}};
}

const CodeletLibrary* findLibrary(const ProgramCodelets& program, const std::string& path) {
  for (const CodeletLibrary& library : program)
    if (library.path == path) return &library;
  return nullptr;
}

void addTypes(GraphState& graph, const std::string& path, const VertexTable& table) {
  for (std::size_t i = 0; i < table.count; ++i) {
    const Vertex& vertex = table.vertices[i];
    const auto [known, added] = graph.vertex_types.emplace(vertex.name, &vertex);
    if (!added && known->second != &vertex)
      throw graph_object_load_error("addCodelets: vertex type " + std::string(vertex.name) + " of '" + path +
                                    "' is in another codelet file, too. Rename one of them.");
  }
}

void add(GraphState& graph, CodeletLibrary library) {
  graph.program_codelets->push_back(std::move(library));
  addTypes(graph, graph.program_codelets->back().path, *graph.program_codelets->back().table);
}

}  // namespace

void addCodeletImage(GraphState& graph, const std::string& path, const std::string& image) {
  const ScratchDirectory scratch;
  std::ofstream file(scratch.output(), std::ios::binary);
  file << image;
  file.close();
  if (!file)
    throw graph_object_load_error("The codelets of an executable cannot be written to '" + scratch.output() +
                                  "': no space is left, or it is not allowed. Set TMPDIR to another directory.");
  add(graph, load(path, scratch.output()));
}

const Vertex* findVertexType(const GraphState& graph, const std::string& name) {
  const auto own = graph.vertex_types.find(name);
  if (own != graph.vertex_types.end()) return own->second;
  const Vertex* found = nullptr;
  std::string path;
  for (const CodeletLibrary& library : *graph.program_codelets) {
    for (std::size_t i = 0; i < library.table->count; ++i) {
      const Vertex& vertex = library.table->vertices[i];
      if (name != vertex.name || found == &vertex) continue;
      if (found)
        throw graph_object_load_error("Vertex type '" + name + "' is in two codelet files of the program, '" +
                                      path + "' and '" + library.path + "'. Call addCodelets in this op with the one " +
                                      "that is meant, or rename one of them.");
      found = &vertex;
      path = library.path;
    }
  }
  return found;
}

}  // namespace detail

using namespace detail;

bool Graph::addCodelets(StringRef source, CodeletFileType type, StringRef compileFlags, StringRef targetName) {
  std::ostringstream ignored;
  return addCodelets(source, type, compileFlags, ignored, targetName);
}

bool Graph::addCodelets(StringRef source, CodeletFileType type, StringRef compileFlags, std::ostream& compileOutput,
                        StringRef) {
  const std::string path = realPath(source);
  auto& known = state_->sources;
  if (std::find(known.begin(), known.end(), path) != known.end()) return false;
  const bool is_object = type == CodeletFileType::Object ||
                         (type == CodeletFileType::Auto && path.size() > 3 && path.substr(path.size() - 3) == ".gp");
  if (type == CodeletFileType::AsmSource || type == CodeletFileType::PreprocessedAsmSource ||
      type == CodeletFileType::IrSource ||
      (path.size() > 2 && (path.substr(path.size() - 2) == ".S" || path.substr(path.size() - 2) == ".s")))
    throw graph_object_load_error("addCodelets: '" + path + "' is assembly of an IPU, which is not supported. Pass a C++ codelet.");
  const CodeletLibrary* const known_library = findLibrary(*state_->program_codelets, path);
  if (known_library) {  // another op of the program has added it
    addTypes(*state_, path, *known_library->table);
  } else if (is_object) {
    checkTrusted(path);
    add(*state_, load(path, path));
  } else {
    const ScratchDirectory scratch;
    compile(path, path, compileFlags, scratch.output(), compileOutput);
    add(*state_, load(path, scratch.output()));
  }
  known.push_back(path);
  return !known_library;
}

bool Graph::addCodelets(ArrayRef<std::string> sources, StringRef compileFlags, StringRef targetName) {
  bool added = false;
  for (const auto& source : sources) added |= addCodelets(source, CodeletFileType::Auto, compileFlags, targetName);
  return added;
}

void Graph::addCodelets(std::istream& source, StringRef compileFlags, CodeletFileType type, StringRef targetName) {
  std::ostringstream ignored;
  addCodelets(source, compileFlags, ignored, type, targetName);
}

void Graph::addCodelets(std::istream& source, StringRef compileFlags, std::ostream& compileOutput, CodeletFileType type,
                        StringRef) {
  if (type != CodeletFileType::CppSource && type != CodeletFileType::CSource && type != CodeletFileType::Auto)
    throw graph_object_load_error("addCodelets: only C++ can be compiled from memory. Pass CodeletFileType::CppSource.");
  const ScratchDirectory scratch;
  std::ofstream file(scratch.source());
  file << source.rdbuf();
  file.close();
  if (!file)
    throw graph_program_compilation_error("addCodelets: the source cannot be read, is empty, or cannot be written to '" +
                                          scratch.source() + "'. Pass a stream with a source; TMPDIR sets the directory.");
  compile(scratch.source(), "source from memory", compileFlags, scratch.output(), compileOutput);
  add(*state_, load(scratch.output(), scratch.output()));
}

}  // namespace poplar
