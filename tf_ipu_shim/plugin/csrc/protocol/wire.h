// Messages to and from Python in protobuf's wire format. Code that protoc generates is not used: it would be tied to one
// protobuf, and each TensorFlow brings its own. A message is a struct that shows its fields, once, to any visitor.
//
//   struct Point {
//     static constexpr char kName[] = "tf_ipu_shim.Point";
//     int32_t x = 0;
//     std::vector<std::string> labels;
//     template <class Self, class Visitor>
//     static void Fields(Self& self, Visitor& visit) {
//       visit(1, "x", self.x);
//       visit(2, "labels", self.labels);
//     }
//   };
//
// Reading is strict: both sides come from one checkout, so an unknown field is a mistake.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kDelimited = 2 };

// A cursor over unread bytes. Every method returns false if the bytes are too few or malformed.
class WireCursor {
 public:
  WireCursor(const char* begin, const char* end) : at_(begin), end_(end) {}

  bool done() const { return at_ == end_; }
  const char* data() const { return at_; }
  size_t size() const { return end_ - at_; }

  bool Varint(uint64_t* value);
  bool Fixed64(uint64_t* value);
  bool Delimited(WireCursor* inside);

 private:
  const char* at_;
  const char* end_;
};

void AppendVarint(uint64_t value, std::string* bytes);
void AppendFixed64(uint64_t value, std::string* bytes);
void AppendDelimited(const std::string& value, std::string* bytes);
bool ReadDelimited(WireCursor* from, std::string* value);
bool IsUtf8(const std::string& text);

// A field of type `bytes`: no text.
struct ByteString {
  std::string value;
};

// A serialized message of Graphcore's trace.proto, which the plugin only passes on.
struct TraceEvent {
  std::string serialized;
};

// How a C++ type is on the wire. Specialised for each that a field can have.
template <class T, class = void>
struct Wire;

template <>
struct Wire<int32_t> {
  static constexpr WireType kType = WireType::kVarint;
  static bool IsDefault(int32_t value) { return value == 0; }
  static bool Read(WireCursor* from, int32_t* value, std::string*) {
    uint64_t read;
    if (!from->Varint(&read)) return false;
    const int64_t number = static_cast<int64_t>(read);
    *value = static_cast<int32_t>(number);
    return *value == number;
  }
  static bool Append(int32_t value, std::string* bytes) {
    AppendVarint(static_cast<uint64_t>(static_cast<int64_t>(value)), bytes);
    return true;
  }
};

template <>
struct Wire<int64_t> {
  static constexpr WireType kType = WireType::kVarint;
  static bool IsDefault(int64_t value) { return value == 0; }
  static bool Read(WireCursor* from, int64_t* value, std::string*) {
    uint64_t read;
    if (!from->Varint(&read)) return false;
    *value = static_cast<int64_t>(read);
    return true;
  }
  static bool Append(int64_t value, std::string* bytes) {
    AppendVarint(static_cast<uint64_t>(value), bytes);
    return true;
  }
};

template <>
struct Wire<bool> {
  static constexpr WireType kType = WireType::kVarint;
  static bool IsDefault(bool value) { return !value; }
  static bool Read(WireCursor* from, bool* value, std::string*) {
    uint64_t read;
    if (!from->Varint(&read)) return false;
    *value = read != 0;
    return read <= 1;
  }
  static bool Append(bool value, std::string* bytes) {
    AppendVarint(value, bytes);
    return true;
  }
};

template <>
struct Wire<tensorflow::DataType> {
  static constexpr WireType kType = WireType::kVarint;
  static bool IsDefault(tensorflow::DataType value) { return value == tensorflow::DT_INVALID; }
  static bool Read(WireCursor* from, tensorflow::DataType* value, std::string* problem) {
    int32_t number;
    if (!Wire<int32_t>::Read(from, &number, problem) || !tensorflow::DataType_IsValid(number)) return false;
    *value = static_cast<tensorflow::DataType>(number);
    return true;
  }
  static bool Append(tensorflow::DataType value, std::string* bytes) { return Wire<int32_t>::Append(value, bytes); }
};

template <>
struct Wire<double> {
  static constexpr WireType kType = WireType::kFixed64;
  static bool IsDefault(double value) { return value == 0; }
  static bool Read(WireCursor* from, double* value, std::string*) {
    uint64_t bits;
    if (!from->Fixed64(&bits)) return false;
    std::memcpy(value, &bits, sizeof(bits));
    return true;
  }
  static bool Append(double value, std::string* bytes) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    AppendFixed64(bits, bytes);
    return true;
  }
};

template <>
struct Wire<std::string> {
  static constexpr WireType kType = WireType::kDelimited;
  static bool IsDefault(const std::string& value) { return value.empty(); }
  // Python reads no other text; a message with such is refused here, too.
  static bool Read(WireCursor* from, std::string* value, std::string*) {
    return ReadDelimited(from, value) && IsUtf8(*value);
  }
  static bool Append(const std::string& value, std::string* bytes) {
    AppendDelimited(value, bytes);
    return true;
  }
};

template <>
struct Wire<ByteString> {
  static constexpr WireType kType = WireType::kDelimited;
  static bool IsDefault(const ByteString& bytes) { return bytes.value.empty(); }
  static bool Read(WireCursor* from, ByteString* bytes, std::string*) {
    return ReadDelimited(from, &bytes->value);
  }
  static bool Append(const ByteString& value, std::string* bytes) {
    AppendDelimited(value.value, bytes);
    return true;
  }
};

template <>
struct Wire<TraceEvent> {
  static constexpr WireType kType = WireType::kDelimited;
  static bool IsDefault(const TraceEvent&) { return false; }
  static bool Read(WireCursor* from, TraceEvent* value, std::string*) {
    return ReadDelimited(from, &value->serialized);
  }
  static bool Append(const TraceEvent& value, std::string* bytes) {
    AppendDelimited(value.serialized, bytes);
    return true;
  }
};

// TensorFlow's own messages.
template <class T>
struct Wire<T, std::enable_if_t<std::is_base_of_v<tensorflow::protobuf::MessageLite, T>>> {
  static constexpr WireType kType = WireType::kDelimited;
  static bool IsDefault(const T&) { return false; }
  static bool Read(WireCursor* from, T* value, std::string*) {
    WireCursor inside(nullptr, nullptr);
    return from->Delimited(&inside) && inside.size() <= std::numeric_limits<int>::max() &&
           value->ParseFromArray(inside.data(), static_cast<int>(inside.size()));
  }
  static bool Append(const T& value, std::string* bytes) {
    std::string inside;
    if (!value.SerializeToString(&inside)) return false;
    AppendDelimited(inside, bytes);
    return true;
  }
};

// Reads the field with one number.
class FieldReader {
 public:
  FieldReader(uint32_t number, uint32_t type, const char* message, WireCursor* from, std::string* problem)
      : number_(number), type_(type), message_(message), from_(from), problem_(problem) {}

  template <class T>
  void operator()(uint32_t number, const char* name, T& value) {
    Take<T>(number, name, [&] { return Wire<T>::Read(from_, &value, problem_); });
  }
  template <class T>
  void operator()(uint32_t number, const char* name, std::optional<T>& value) {
    Take<T>(number, name, [&] { return Wire<T>::Read(from_, &value.emplace(), problem_); });
  }
  template <class T>
  void operator()(uint32_t number, const char* name, std::vector<T>& values) {
    if (Wire<T>::kType != WireType::kDelimited && type_ == static_cast<uint32_t>(WireType::kDelimited)) {
      Take<std::string>(number, name, [&] { return ReadPacked(&values); });
    } else {
      Take<T>(number, name, [&] { return Wire<T>::Read(from_, &values.emplace_back(), problem_); });
    }
  }

  bool found() const { return found_; }

 private:
  template <class T, class Read>
  void Take(uint32_t number, const char* name, Read read) {
    if (number != number_ || !problem_->empty()) return;
    found_ = true;
    if (type_ == static_cast<uint32_t>(Wire<T>::kType) && read()) return;
    if (problem_->empty()) *problem_ = std::string("field ") + name + " of " + message_ + " cannot be read";
  }
  template <class T>
  bool ReadPacked(std::vector<T>* values) {
    WireCursor inside(nullptr, nullptr);
    if (!from_->Delimited(&inside)) return false;
    while (!inside.done()) {
      if (!Wire<T>::Read(&inside, &values->emplace_back(), problem_)) return false;
    }
    return true;
  }

  const uint32_t number_, type_;
  const char* const message_;
  WireCursor* const from_;
  std::string* const problem_;
  bool found_ = false;
};

template <class Message>
bool ReadFields(WireCursor from, Message* message, std::string* problem) {
  while (!from.done()) {
    uint64_t tag;
    if (!from.Varint(&tag) || tag > std::numeric_limits<uint32_t>::max()) {
      *problem = std::string(Message::kName) + " ends within a field";
      return false;
    }
    const uint32_t number = static_cast<uint32_t>(tag >> 3);
    FieldReader reader(number, static_cast<uint32_t>(tag & 7), Message::kName, &from, problem);
    Message::Fields(*message, reader);
    if (!reader.found()) *problem = std::string(Message::kName) + " has no field " + std::to_string(number);
    if (!problem->empty()) return false;
  }
  return true;
}

// Appends all fields whose value differs from the default.
class FieldWriter {
 public:
  explicit FieldWriter(std::string* bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(uint32_t number, const char*, const T& value) {
    if (!Wire<T>::IsDefault(value)) Append(number, value);
  }
  template <class T>
  void operator()(uint32_t number, const char*, const std::optional<T>& value) {
    if (value.has_value()) Append(number, *value);
  }
  template <class T>
  void operator()(uint32_t number, const char*, const std::vector<T>& values) {
    for (const T& value : values) Append(number, value);
  }

  bool ok() const { return ok_; }

 private:
  template <class T>
  void Append(uint32_t number, const T& value) {
    AppendVarint(number << 3 | static_cast<uint32_t>(Wire<T>::kType), bytes_);
    ok_ = Wire<T>::Append(value, bytes_) && ok_;
  }

  std::string* const bytes_;
  bool ok_ = true;
};

// Declared messages within others.
template <class T>
struct Wire<T, std::void_t<decltype(T::kName)>> {
  static constexpr WireType kType = WireType::kDelimited;
  static bool IsDefault(const T&) { return false; }
  static bool Read(WireCursor* from, T* value, std::string* problem) {
    WireCursor inside(nullptr, nullptr);
    return from->Delimited(&inside) && ReadFields(inside, value, problem);
  }
  static bool Append(const T& value, std::string* bytes) {
    std::string inside;
    FieldWriter writer(&inside);
    T::Fields(value, writer);
    AppendDelimited(inside, bytes);
    return writer.ok();
  }
};

template <class Message>
tensorflow::Status ReadMessage(const std::string& bytes, Message* message) {
  std::string problem;
  if (ReadFields(WireCursor(bytes.data(), bytes.data() + bytes.size()), message, &problem)) {
    return tensorflow::OkStatus();
  }
  return tensorflow::errors::Internal("tf_ipu_shim's Python side sent no readable ", Message::kName, ": ", problem);
}

// Fails where a part is larger than protobuf allows, 2 GiB.
template <class Message>
tensorflow::Status WriteMessage(const Message& message, std::string* bytes) {
  FieldWriter writer(bytes);
  Message::Fields(message, writer);
  if (writer.ok() && bytes->size() <= std::numeric_limits<int>::max()) return tensorflow::OkStatus();
  return tensorflow::errors::ResourceExhausted(Message::kName, " is too large to pass: protobuf allows 2 GiB");
}

}  // namespace tf_ipu_shim
