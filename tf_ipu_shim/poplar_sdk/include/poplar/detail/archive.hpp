// Writes values to a file, and reads them in a process that has loaded the same libraries.
#ifndef poplar_detail_archive_hpp
#define poplar_detail_archive_hpp

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace poplar::detail {

using AnyFunction = void (*)();

class Writer {
 public:
  static constexpr bool reads = false;
  void bytes(const void* data, std::size_t count) { data_.append(static_cast<const char*>(data), count); }
  std::size_t size(std::size_t count) {
    bytes(&count, sizeof count);
    return count;
  }
  // A function of a library is its library and its place there.
  AnyFunction function(AnyFunction function);
  const std::string& data() const { return data_; }
  // Paths of the libraries whose functions were written.
  const std::vector<std::string>& libraries() const { return libraries_; }

 private:
  std::string data_;
  std::vector<std::string> libraries_;
};

class Reader {
 public:
  static constexpr bool reads = true;
  // `libraries`: where each of the writer's libraries is in memory. All data is checked to be there.
  Reader(std::string data, std::vector<char*> libraries) : data_(std::move(data)), libraries_(std::move(libraries)) {}
  void bytes(void* data, std::size_t count);
  // The number of elements that follow; more than there are bytes left is an error.
  std::size_t size(std::size_t);
  AnyFunction function(AnyFunction);

 private:
  std::string data_;
  std::size_t at_ = 0;
  std::vector<char*> libraries_;
};

template <class Archive, class... T>
void transfer(Archive& archive, T&... values);

template <class Archive, class T, class = void>
inline constexpr bool has_fields = false;
template <class Archive, class T>
inline constexpr bool
    has_fields<Archive, T, std::void_t<decltype(transferFields(std::declval<Archive&>(), std::declval<T&>()))>> = true;

template <class T>
inline constexpr bool is_function_pointer = std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>;

// How a value is transferred: by a function `transferFields(archive, value)` of its namespace, else as its bytes.
template <class T>
struct Transfer {
  template <class Archive>
  static void run(Archive& archive, T& value) {
    if constexpr (has_fields<Archive, T>) {
      transferFields(archive, value);
    } else if constexpr (is_function_pointer<T>) {
      value = reinterpret_cast<T>(archive.function(reinterpret_cast<AnyFunction>(value)));
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "Write transferFields() for the type.");
      archive.bytes(&value, sizeof(T));
    }
  }
};

template <class Archive, class... T>
void transfer(Archive& archive, T&... values) {
  (Transfer<T>::run(archive, values), ...);
}

template <class Archive, class T>
void write(Archive& writer, const T& value) {
  transfer(writer, const_cast<T&>(value));  // a writer changes nothing
}

template <>
struct Transfer<std::string> {
  template <class Archive>
  static void run(Archive& archive, std::string& value) {
    value.resize(archive.size(value.size()));
    archive.bytes(value.data(), value.size());
  }
};

template <class T>
struct Transfer<std::vector<T>> {
  template <class Archive>
  static void run(Archive& archive, std::vector<T>& values) {
    values.resize(archive.size(values.size()));
    if constexpr (std::is_arithmetic_v<T>) {
      archive.bytes(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) transfer(archive, value);
    }
  }
};

template <>
struct Transfer<std::vector<bool>> {
  template <class Archive>
  static void run(Archive& archive, std::vector<bool>& values) {
    std::vector<char> bytes(values.begin(), values.end());
    transfer(archive, bytes);
    values.assign(bytes.begin(), bytes.end());
  }
};

template <class T>
struct Transfer<std::optional<T>> {
  template <class Archive>
  static void run(Archive& archive, std::optional<T>& value) {
    bool present = value.has_value();
    transfer(archive, present);
    if (!present) return;
    if constexpr (Archive::reads) value.emplace();
    transfer(archive, *value);
  }
};

template <class A, class B>
struct Transfer<std::pair<A, B>> {
  template <class Archive>
  static void run(Archive& archive, std::pair<A, B>& value) {
    transfer(archive, value.first, value.second);
  }
};

template <class... T>
struct Transfer<std::tuple<T...>> {
  template <class Archive>
  static void run(Archive& archive, std::tuple<T...>& values) {
    std::apply([&](auto&... value) { transfer(archive, value...); }, values);
  }
};

template <class K, class V>
struct Transfer<std::map<K, V>> {
  template <class Archive>
  static void run(Archive& archive, std::map<K, V>& map) {
    std::vector<std::pair<K, V>> pairs(map.begin(), map.end());
    transfer(archive, pairs);
    if constexpr (Archive::reads) map = std::map<K, V>(pairs.begin(), pairs.end());
  }
};

}  // namespace poplar::detail

// Defines how a structure is transferred: field by field. It stands in the structure's namespace.
#define POPLAR_FIELDS(TYPE, ...)                      \
  template <class Archive>                            \
  void transferFields(Archive& archive, TYPE& part) { \
    poplar::detail::transfer(archive, __VA_ARGS__);   \
  }

#endif
