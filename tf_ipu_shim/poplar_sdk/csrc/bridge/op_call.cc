// Parses requests to a user's library.
#include "op_call.hpp"

#include <functional>
#include <numeric>
#include <stdexcept>

namespace tf_ipu_shim {
namespace {

constexpr std::size_t field_count = 12;

std::vector<std::string> fieldsOf(const std::string& bytes) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t colon = bytes.find(':', at);
    const std::size_t length = std::stoul(bytes.substr(at, colon - at));
    fields.push_back(bytes.substr(colon + 1, length));
    at = colon + 1 + length;
  }
  if (fields.size() != field_count) throw std::invalid_argument("the call of an op has another number of fields");
  return fields;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Indexed by TensorFlow's `DataType`.
poplar::Type typeOf(int kind) {
  switch (kind) {
    case 1: return poplar::FLOAT;
    case 2: return poplar::DOUBLE;
    case 3: return poplar::INT;
    case 4: return poplar::UNSIGNED_CHAR;
    case 5: return poplar::SHORT;
    case 6: return poplar::SIGNED_CHAR;
    case 9: return poplar::LONGLONG;
    case 10: return poplar::BOOL;
    case 17: return poplar::UNSIGNED_SHORT;
    case 19: return poplar::HALF;
    case 22: return poplar::UNSIGNED_INT;
    case 23: return poplar::UNSIGNED_LONGLONG;
    default:
      throw std::invalid_argument("a tensor of a user's op has TensorFlow's dtype number " + std::to_string(kind) +
                                  "; expected float32, float16, a boolean or an integer. Cast it.");
  }
}

std::size_t bytesOf(int kind) {
  switch (kind) {
    case 4: case 6: case 10: return 1;
    case 5: case 17: case 19: return 2;
    case 2: case 9: case 23: return 8;
    default: return 4;
  }
}

std::vector<TensorType> tensorsOf(const std::string& text) {
  std::vector<TensorType> tensors;
  for (const std::string& one : split(text, ',')) {
    const std::size_t colon = one.find(':');
    const int kind = std::stoi(one.substr(0, colon));
    TensorType tensor{typeOf(kind), {}, 0};
    for (const std::string& size : split(one.substr(colon + 1), 'x')) tensor.shape.push_back(std::stoul(size));
    tensor.bytes = std::accumulate(tensor.shape.begin(), tensor.shape.end(), bytesOf(kind), std::multiplies<>());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// The target's last word: the number of IPUs, or "IPUS:ORDER:ORIGIN,ORIGIN". An origin is "a" for an argument, a
// variable or a constant. It is "c" for a computed value, and "c1" if IPU 1 computes it. "ORDER.OUTPUT" is an output of
// a user's op.
void parseOrigins(const std::string& word, OpCall* call) {
  const std::vector<std::string> parts = split(word, ':');
  if (parts.size() < 3) return;
  call->order = std::stoi(parts[1]);
  for (const std::string& text : split(parts[2], ',')) {
    OpCall::Origin origin;
    origin.is_computed = text != "a";
    if (const std::size_t dot = text.find('.'); dot != std::string::npos) {
      origin.order = std::stoi(text.substr(0, dot));
      origin.output = std::stoi(text.substr(dot + 1));
    } else if (text.size() > 1) {
      origin.ipu = std::stoi(text.substr(1));
    }
    call->origins.push_back(origin);
  }
}

}  // namespace

OpCall OpCall::parse(const std::string& bytes) {
  const std::vector<std::string> fields = fieldsOf(bytes);
  OpCall call;
  call.library_path = fields[0];
  call.library_digest = fields[1];
  call.gp_path = fields[2];
  call.op_name = fields[3];
  call.target = fields[4];
  call.gradient_size = std::stoul(fields[5]);
  call.partial_derivative = std::stoi(fields[6]);
  call.separate_gradients = fields[7] == "1";
  call.attributes = fields[8];
  call.name = fields[9];
  call.inputs = tensorsOf(fields[10]);
  call.outputs = tensorsOf(fields[11]);
  parseOrigins(call.target.substr(call.target.rfind(' ') + 1), &call);
  return call;
}

std::string describe(const poplar::Type& type, const std::vector<std::size_t>& shape) {
  std::string text = type.toString().str() + ", shape {";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) text += (axis > 0 ? "," : "") + std::to_string(shape[axis]);
  return text + "}";
}

}  // namespace tf_ipu_shim
