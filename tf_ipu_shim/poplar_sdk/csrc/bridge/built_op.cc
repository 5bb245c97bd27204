// Builds a user's op by its library's functions, and runs it.
#include "built_op.hpp"

#include "poplar/engine/runner.hpp"
#include "poplar/graph/state.hpp"

#include <poplar/Device.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Target.hpp>
#include <poputil/TileMapping.hpp>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

namespace tf_ipu_shim {
namespace {

poplar::Target targetOf(const std::string& text) {
  std::istringstream words(text.empty() ? "IPU ipu2 1472 eager 1" : text);
  std::string type, version, program;
  unsigned tiles = 0, ipus = 0;
  words >> type >> version >> tiles >> program >> ipus;
  if (type == "IPU") return poplar::Target::createIPUTarget(ipus, tiles, version);
  poplar::IPUModel model(version.c_str());
  model.numIPUs = ipus;
  model.tilesPerIPU = tiles;
  return model.createTarget();
}

// The tensor as TensorFlow's type, if both are integers of one size: PopLibs' indices are unsigned, TensorFlow's are not.
poplar::Tensor withTypeOf(const TensorType& expected, const poplar::Tensor& tensor) {
  const auto isInteger = [](const poplar::Type& type) { return type != poplar::BOOL && !type.isFloatingPoint(); };
  if (!tensor.valid() || !isInteger(tensor.elementType()) || !isInteger(expected.type)) return tensor;
  const bool same_size = poplar::detail::typeSize(tensor.elementType()) == poplar::detail::typeSize(expected.type);
  return same_size ? tensor.reinterpret(expected.type) : tensor;
}

std::string handleOf(const char* kind, std::size_t index) { return kind + std::to_string(index); }

}  // namespace

BuiltOp::BuiltOp(OpCall call, const std::vector<const BuiltOp*>& earlier)
    : call_(std::move(call)), graph_(targetOf(call_.target)) {
  graph_.state().of_tensorflow_op = true;
  if (!earlier.empty()) graph_.state().program_codelets = earlier.front()->graph_.state().program_codelets;
  const UserLibrary& library = UserLibrary::get(call_);
  library.require(call_);
  const std::string what = call_.function() + " of " + call_.library_path;
  addInputs(library, earlier);
  program_ = library.build(call_, graph_, inputs_, outputs_);
  for (std::size_t i = 0; i < std::min(outputs_.size(), call_.outputs.size()); ++i)
    outputs_[i] = withTypeOf(call_.outputs[i], outputs_[i]);
  checkOutputs(what);
  callUser("The program that " + what + " builds", [&] {
    for (std::size_t i = 0; i < inputs_.size(); ++i) graph_.createHostWrite(handleOf("input", i), inputs_[i]);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].valid()) graph_.createHostRead(handleOf("output", i), outputs_[i]);
    idle_.push_back(takeEngine());
  });
}

OpCall::Origin BuiltOp::originOf(std::size_t input) const {
  return input < call_.origins.size() ? call_.origins[input] : OpCall::Origin();
}

// A variable that lies as the output of the user's op that makes it. Other values lie linearly, on the IPU that makes
// them or on all.
poplar::Tensor BuiltOp::unallocatedInput(std::size_t index, const std::vector<const BuiltOp*>& earlier) {
  const TensorType& type = call_.inputs[index];
  poplar::Tensor tensor = graph_.addVariable(type.type, type.shape, poplar::VariableMappingMethod::LINEAR,
                                             call_.name + "/" + handleOf("input", index));
  const OpCall::Origin origin = originOf(index);
  const poplar::Target& target = graph_.getTarget();
  if (origin.ipu >= 0 && static_cast<unsigned>(origin.ipu) < target.getNumIPUs() && target.getNumIPUs() > 1) {
    const unsigned tiles = target.getTilesPerIPU(), first = static_cast<unsigned>(origin.ipu) * tiles;
    poplar::Graph one_ipu = graph_.createVirtualGraph(first, first + tiles);
    poputil::mapTensorLinearly(one_ipu, tensor);
  }
  const auto maker = std::find_if(earlier.begin(), earlier.end(), [&](const BuiltOp* op) {
    return origin.order >= 0 && op->call_.order == origin.order;
  });
  if (maker == earlier.end()) return tensor;
  const BuiltOp& op = **maker;
  const auto output = static_cast<std::size_t>(origin.output);
  if (output >= op.outputs_.size() || !op.outputs_[output].valid() ||
      op.outputs_[output].numElements() != tensor.numElements() ||
      op.graph_.getTarget().getNumTiles() != target.getNumTiles())
    return tensor;
  graph_.setTileMapping(tensor, op.graph_.getTileMapping(op.outputs_[output]));
  return tensor;
}

void BuiltOp::addInputs(const UserLibrary& library, const std::vector<const BuiltOp*>& earlier) {
  if (!call_.gp_path.empty()) {
    callUser("Loading the codelets of " + call_.gp_path, [&] { graph_.addCodelets(call_.gp_path); });
  }
  const Metadata metadata = library.metadata(call_);
  for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
    const TensorType& type = call_.inputs[i];
    const auto& indices = metadata.allocating_indices;
    poplar::Tensor tensor;
    const bool allocates = std::count(indices.begin(), indices.end(), static_cast<std::int64_t>(i)) > 0;
    if (allocates && !originOf(i).is_computed)
      tensor = withTypeOf(type, library.allocate(call_, graph_, static_cast<unsigned>(i)));
    allocated_.push_back(tensor.valid());
    if (!tensor.valid()) {
      tensor = unallocatedInput(i, earlier);
    } else if (tensor.elementType() != type.type || tensor.shape() != type.shape) {
      throw Failure(Code::Internal, call_.function() + "_allocator of " + call_.library_path + " returned " +
                                        describe(tensor.elementType(), tensor.shape()) + " for input " +
                                        std::to_string(i) + "; expected " + describe(type.type, type.shape) +
                                        ". Change the function.");
    }
    inputs_.push_back(std::move(tensor));
  }
}

void BuiltOp::checkOutputs(const std::string& what) const {
  const auto& expected = call_.outputs;
  const bool is_gradient = call_.gradient_size > 0;
  const std::string fix = is_gradient ? " Change the function, inputs_with_gradients or separate_gradients."
                                      : " Change the function or `outs`.";
  // An op on empty tensors may stop before it has made anything.
  const bool empty = std::all_of(expected.begin(), expected.end(), [](const TensorType& type) { return type.bytes == 0; });
  if (outputs_.empty() && empty) return;
  if (outputs_.size() != expected.size())
    throw Failure(Code::Internal, what + " made " + std::to_string(outputs_.size()) + " outputs; expected " +
                                      std::to_string(expected.size()) +
                                      (is_gradient ? ", one for each input that has a gradient." : ", as `outs` says.") +
                                      fix);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!outputs_[i].valid()) {  // no gradient
      if (is_gradient) continue;
      throw Failure(Code::Internal, "Output " + std::to_string(i) + " of " + what +
                                        " is a tensor without a value; expected " +
                                        describe(expected[i].type, expected[i].shape) + "." + fix);
    }
    if (outputs_[i].elementType() != expected[i].type || outputs_[i].shape() != expected[i].shape)
      throw Failure(Code::Internal, "Output " + std::to_string(i) + " of " + what + " is " +
                                        describe(outputs_[i].elementType(), outputs_[i].shape()) + "; expected " +
                                        describe(expected[i].type, expected[i].shape) + "." + fix);
  }
}

std::unique_ptr<poplar::Engine> BuiltOp::takeEngine() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      auto engine = std::move(idle_.back());
      idle_.pop_back();
      return engine;
    }
  }
  // POPLAR_ENGINE_OPTIONS are of TensorFlow's program, which applies them itself.
  const auto executable = poplar::compileGraph(graph_, {program_});
  auto engine = std::make_unique<poplar::Engine>(
      std::make_unique<poplar::detail::Runner>(executable.compiled(), poplar::OptionFlags()));
  engine->load(poplar::Device(0, graph_.getTarget()));
  return engine;
}

void BuiltOp::locate(const std::string& op) {
  std::lock_guard<std::mutex> lock(mutex_);
  located_ = op;
}

Failure BuiltOp::inScript(const Failure& failure) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (located_.empty()) return failure;
  const std::string message = failure.what();
  return Failure(failure.code, message + (message.back() == '.' ? "" : ".") + " Op " + located_ + ".");
}

void BuiltOp::run(const void* const* inputs, void* const* outputs) {
  const std::string what = call_.name + " (" + call_.function() + " of " + call_.library_path + ")";
  auto engine = takeEngine();
  try {
    callUser(what, [&] { runIn(*engine, inputs, outputs); });
  } catch (const Failure& failure) {
    throw inScript(failure);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(engine));
}

void BuiltOp::runIn(poplar::Engine& engine, const void* const* inputs, void* const* outputs) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto* data = static_cast<const char*>(inputs[i]);
    if (call_.inputs[i].bytes > 0) engine.writeTensor(handleOf("input", i), data, data + call_.inputs[i].bytes);
  }
  engine.run(0);
  for (std::size_t i = 0; i < call_.outputs.size(); ++i) {
    auto* data = static_cast<char*>(outputs[i]);
    if (call_.outputs[i].bytes == 0) continue;
    if (i < outputs_.size() && outputs_[i].valid()) {
      engine.readTensor(handleOf("output", i), data, data + call_.outputs[i].bytes);
    } else {
      std::memset(data, 0, call_.outputs[i].bytes);
    }
  }
}

}  // namespace tf_ipu_shim
