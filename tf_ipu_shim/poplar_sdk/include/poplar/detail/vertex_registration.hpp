// Describes vertices by their members' types. `popc` generates a list of names for these templates.
#ifndef POPLAR_DETAIL_VERTEX_REGISTRATION_HPP
#define POPLAR_DETAIL_VERTEX_REGISTRATION_HPP

#include <poplar/Vertex.hpp>
#include <poplar/detail/type_names.hpp>
#include <poplar/detail/vertex_table.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace poplar::detail {

template <typename T>
constexpr void checkElementType() {
  static_assert(typeName<T>()[0] != '\0', "a field is connected to a type that no tensor has");
  static_assert(!std::is_same_v<T, long long> || sizeof(T) == 8, "long long has 64 bits");
}

constexpr unsigned stateBytes(VectorLayout layout) {
  switch (layout) {
    case VectorLayout::SPAN:
      return 8;
    case VectorLayout::SCALED_PTR32:
    case VectorLayout::SCALED_PTR64:
    case VectorLayout::SCALED_PTR128:
      return 2;
    default:
      return 4;
  }
}

// A plain member.
template <typename M>
struct FieldTraits {
  using Element = std::remove_cv_t<std::remove_all_extents_t<M>>;
  static constexpr FieldKind kind = FieldKind::Value;
  static constexpr unsigned depth = std::is_array_v<M> ? 1 : 0;
  static constexpr std::size_t fixed = std::is_array_v<M> ? sizeof(M) / sizeof(Element) : 0;
  static constexpr unsigned alignment = alignof(M);
  static constexpr unsigned bytes = sizeof(M);
  static constexpr void (*bind)(void*, void* const*, const std::size_t*, std::size_t) = nullptr;
  static constexpr void (*release)(void*) = nullptr;
};

template <typename M, typename T, FieldKind K>
struct ElementTraits {
  using Element = T;
  static constexpr FieldKind kind = K;
  static constexpr unsigned depth = 0;
  static constexpr std::size_t fixed = 0;
  static constexpr unsigned alignment = alignof(T);
  static constexpr unsigned bytes = 4;
  static void bind(void* field, void* const* rows, const std::size_t*, std::size_t) {
    bindRow(static_cast<M*>(field), rows[0], 1, field, -1);
  }
  static void bindRow(M* member, void* first, std::size_t, const void*, std::ptrdiff_t) {
    member->bindElement(static_cast<T*>(first));
  }
  static constexpr void (*release)(void*) = nullptr;
};

template <typename M, typename T, FieldKind K, VectorLayout L, unsigned A>
struct VectorTraits {
  using Element = T;
  static constexpr FieldKind kind = K;
  static constexpr unsigned depth = 1;
  static constexpr std::size_t fixed = 0;
  static constexpr unsigned alignment = std::max<unsigned>(A, alignof(T));
  static constexpr unsigned bytes = stateBytes(L);
  static void bind(void* field, void* const* rows, const std::size_t* sizes, std::size_t) {
    bindRow(static_cast<M*>(field), rows[0], sizes[0], field, -1);
  }
  static void bindRow(M* member, void* first, std::size_t size, const void* field, std::ptrdiff_t row) {
    member->bindElements(static_cast<T*>(first), size, field, row);
  }
  static constexpr void (*release)(void*) = nullptr;
};

// Vectors in a vector: the table of rows is the member's own memory.
template <typename M, typename Row, unsigned Bytes>
struct RowsTraits {
  using Inner = FieldTraits<Row>;
  using Element = typename Inner::Element;
  static constexpr FieldKind kind = Inner::kind;
  static constexpr unsigned depth = 2;
  static constexpr std::size_t fixed = Inner::depth == 0 ? 1 : 0;
  static constexpr unsigned alignment = Inner::alignment;
  static constexpr unsigned bytes = Bytes;
  static void bind(void* field, void* const* rows, const std::size_t* sizes, std::size_t count) {
    release(field);
    Row* table = static_cast<Row*>(::operator new(std::max<std::size_t>(1, count) * sizeof(Row)));
    for (std::size_t row = 0; row < count; ++row)
      Inner::bindRow(new (&table[row]) Row(), rows[row], sizes[row], field, static_cast<std::ptrdiff_t>(row));
    static_cast<M*>(field)->bindElements(table, count, field, -1);
  }
  static void release(void* field) {
    M* member = static_cast<M*>(field);
    ::operator delete(member->boundElements());
    member->bindElements(nullptr, 0, field, -1);
  }
};

template <typename T>
struct FieldTraits<Input<T>> : ElementTraits<Input<T>, T, FieldKind::Input> {};
template <typename T>
struct FieldTraits<Output<T>> : ElementTraits<Output<T>, T, FieldKind::Output> {};
template <typename T>
struct FieldTraits<InOut<T>> : ElementTraits<InOut<T>, T, FieldKind::InOut> {};

template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<Input<Vector<T, L, A, I>>>
    : VectorTraits<Input<Vector<T, L, A, I>>, T, FieldKind::Input, L, A> {};
template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<Output<Vector<T, L, A, I>>>
    : VectorTraits<Output<Vector<T, L, A, I>>, T, FieldKind::Output, L, A> {};
template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<InOut<Vector<T, L, A, I>>>
    : VectorTraits<InOut<Vector<T, L, A, I>>, T, FieldKind::InOut, L, A> {};

template <typename T, VectorListLayout L, unsigned A, bool I>
struct FieldTraits<Input<VectorList<T, L, A, I>>>
    : RowsTraits<Input<VectorList<T, L, A, I>>, Input<Vector<T, VectorLayout::SPAN, A, I>>, 8> {};
template <typename T, VectorListLayout L, unsigned A, bool I>
struct FieldTraits<Output<VectorList<T, L, A, I>>>
    : RowsTraits<Output<VectorList<T, L, A, I>>, Output<Vector<T, VectorLayout::SPAN, A, I>>, 8> {};
template <typename T, VectorListLayout L, unsigned A, bool I>
struct FieldTraits<InOut<VectorList<T, L, A, I>>>
    : RowsTraits<InOut<VectorList<T, L, A, I>>, InOut<Vector<T, VectorLayout::SPAN, A, I>>, 8> {};

template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<Vector<T, L, A, I>> : VectorTraits<Vector<T, L, A, I>, T, FieldKind::Value, L, A> {};
template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<Vector<Input<T>, L, A, I>> : RowsTraits<Vector<Input<T>, L, A, I>, Input<T>, stateBytes(L)> {};
template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<Vector<Output<T>, L, A, I>> : RowsTraits<Vector<Output<T>, L, A, I>, Output<T>, stateBytes(L)> {};
template <typename T, VectorLayout L, unsigned A, bool I>
struct FieldTraits<Vector<InOut<T>, L, A, I>> : RowsTraits<Vector<InOut<T>, L, A, I>, InOut<T>, stateBytes(L)> {};

template <typename Member>
constexpr Field describeField(const char* name, std::size_t offset) {
  using Traits = FieldTraits<std::remove_cv_t<Member>>;
  using Element = typename Traits::Element;
  if constexpr (Traits::kind != FieldKind::Value) checkElementType<Element>();
  return {name,          Traits::kind,  typeName<Element>(), sizeof(Element),    Traits::depth, offset,
          sizeof(Member), Traits::fixed, Traits::alignment,   Traits::bytes,      Traits::bind,  Traits::release};
}

template <typename V, typename = void>
struct HasCompute : std::false_type {};
template <typename V>
struct HasCompute<V, std::void_t<decltype(std::declval<V&>().compute())>> : std::true_type {};

template <typename V, typename = void>
struct HasWorkerCompute : std::false_type {};
template <typename V>
struct HasWorkerCompute<V, std::void_t<decltype(std::declval<V&>().compute(0u))>> : std::true_type {};

template <typename V, typename = void>
struct HasCycles : std::false_type {};
template <typename V>
struct HasCycles<V, std::void_t<decltype(std::declval<V&>().getCycleEstimate())>> : std::true_type {};

// Whether a class of the source is a vertex, and not only the base class of some.
template <typename V>
constexpr bool isVertex() {
  if constexpr (!std::is_base_of_v<VertexBase, V> || std::is_abstract_v<V>) return false;
  else return HasCompute<V>::value || HasWorkerCompute<V>::value;
}

template <typename V>
bool computeVertex(void* vertex, VertexContext& context) {
  V& self = *static_cast<V*>(vertex);
  runningVertex = &context;
  context.vertex = vertex;
  if constexpr (HasWorkerCompute<V>::value) {
    if constexpr (std::is_void_v<decltype(self.compute(0u))>) return self.compute(context.worker), true;
    else return static_cast<bool>(self.compute(context.worker));
  } else {
    if constexpr (std::is_void_v<decltype(self.compute())>) return self.compute(), true;
    else return static_cast<bool>(self.compute());
  }
}

template <typename V>
std::uint64_t vertexCycles(const void* vertex) {
  return static_cast<std::uint64_t>(const_cast<V*>(static_cast<const V*>(vertex))->getCycleEstimate());
}

template <typename V>
constexpr std::uint64_t (*cyclesFunction())(const void*) {
  if constexpr (HasCycles<V>::value) return &vertexCycles<V>;
  else return nullptr;
}

// Constructed: whether the class has a constructor that can be called. Codelets may declare one and define none.
template <typename V, bool Constructed>
void constructVertex(void* memory) {
  std::memset(memory, 0, sizeof(V));
  // Without parentheses: members without an initializer keep their zeros.
  if constexpr (Constructed && std::is_default_constructible_v<V>) new (memory) V;
}

template <typename V, bool Constructed, const Field* Fields, std::size_t Count>
void destroyVertex(void* vertex) {
  for (std::size_t index = 0; index < Count; ++index)
    if (Fields[index].release) Fields[index].release(static_cast<char*>(vertex) + Fields[index].offset);
  if constexpr (Constructed && std::is_default_constructible_v<V>) static_cast<V*>(vertex)->~V();
}

template <typename V>
constexpr const char* describedType() {
  return __PRETTY_FUNCTION__;
}

// The name of a class as poputil::templateVertex spells it, from the compiler's own: "[with V = ns::A<_Float16, 3>]".
template <typename V>
const char* vertexName() {
  static const std::string name = [] {
    const std::string text = describedType<V>();
    const std::size_t begin = text.find("V = ") + 4;
    std::string found;
    for (std::size_t at = begin; at < text.size() && text[at] != ']' && text[at] != ';'; ++at) {
      if (text.compare(at, 13, "{anonymous}::") == 0) at += 12;
      else if (text.compare(at, 23, "(anonymous namespace)::") == 0) at += 22;
      else if (text.compare(at, 8, "_Float16") == 0) found += "half", at += 7;
      else if (text[at] == ' ' && (text[at - 1] == ',' || text[at + 1] == '>')) continue;
      else found += text[at];
    }
    // g++ spells integers in its own order. Its `long` is `long long` of an IPU.
    constexpr const char* spellings[][2] = {
        {"long long unsigned int", "unsigned long long"}, {"long unsigned int", "unsigned long long"},
        {"long long int", "long long"},                   {"long int", "long long"},
        {"short unsigned int", "unsigned short"},         {"short int", "short"}};
    for (const auto& [of_compiler, of_poplar] : spellings)
      for (std::size_t at; (at = found.find(of_compiler)) != std::string::npos;)
        found.replace(at, std::string(of_compiler).size(), of_poplar);
    return found;
  }();
  return name.c_str();
}

// Members of a class that is no vertex may have any type.
template <typename V, typename Member>
constexpr Field describeMember(const char* name, std::size_t offset) {
  if constexpr (isVertex<V>()) return describeField<Member>(name, offset);
  else return {};
}

template <typename V, bool Constructed, const Field* Fields, std::size_t Count>
void addVertex(Vertex* vertices, std::size_t& count) {
  if constexpr (isVertex<V>()) {
    vertices[count++] = {vertexName<V>(),
                         sizeof(V),
                         alignof(V),
                         std::is_base_of_v<MultiVertex, V> ? MultiVertex::numWorkers() : 1,
                         &constructVertex<V, Constructed>,
                         &destroyVertex<V, Constructed, Fields, Count>,
                         &computeVertex<V>,
                         cyclesFunction<V>(),
                         Fields,
                         Count};
  }
}

// Joins the vertices of the sources; of two with one name, as from a header that both include, it keeps the first.
template <std::size_t (*... Sources)(Vertex*)>
VertexTable makeTable(std::size_t most) {
  static Vertex* const vertices = new Vertex[most + 1];
  std::size_t count = 0;
  const auto add = [&count](std::size_t (*source)(Vertex*)) {
    const std::size_t end = count + source(vertices + count);
    std::size_t kept = count;
    for (std::size_t index = count; index < end; ++index) {
      const auto isSame = [index](const Vertex& other) { return !std::strcmp(other.name, vertices[index].name); };
      if (std::none_of(vertices, vertices + kept, isSame)) vertices[kept++] = vertices[index];
    }
    count = kept;
  };
  (add(Sources), ...);
#ifdef POPLAR_CHECKED
  constexpr bool checked = true;
#else
  constexpr bool checked = false;
#endif
  return {vertexTableVersion, checked, vertices, count};
}

}  // namespace poplar::detail

#endif
