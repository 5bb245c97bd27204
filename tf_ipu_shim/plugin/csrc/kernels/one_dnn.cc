// Replaces ops by the oneDNN kernels that TensorFlow uses on the CPU.
#include "kernels/one_dnn.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow/core/util/util.h"

namespace tf_ipu_shim {
namespace {

constexpr char kLabelAttr[] = "_kernel";
constexpr char kNameChange[] = "MklNameChangeOp";
constexpr char kPoolingGradient[] = "_MklNativeMaxPoolGrad";

struct Pair {
  absl::string_view op, one_dnn;
};

// Ops whose inputs, outputs and attributes are those of oneDNN's op: they are replaced here.
constexpr Pair kDirectPairs[] = {
    {"MatMul", "_MklMatMul"},
    {"BatchMatMul", "_MklBatchMatMul"},
    {"BatchMatMulV2", "_MklBatchMatMulV2"},
    {"Einsum", "_MklEinsum"},
    {"Softmax", "_MklSoftmax"},
    {"Conv2D", "_MklNativeConv2D"},
    {"Conv2DBackpropFilter", "_MklNativeConv2DBackpropFilter"},
    {"Conv2DBackpropInput", "_MklNativeConv2DBackpropInput"},
    {"Conv3D", "_MklNativeConv3D"},
    {"Conv3DBackpropFilterV2", "_MklNativeConv3DBackpropFilterV2"},
    {"Conv3DBackpropInputV2", "_MklNativeConv3DBackpropInputV2"},
    {"DepthwiseConv2dNative", "_MklNativeDepthwiseConv2dNative"},
    {"DepthwiseConv2dNativeBackpropFilter", "_MklNativeDepthwiseConv2dNativeBackpropFilter"},
    {"DepthwiseConv2dNativeBackpropInput", "_MklNativeDepthwiseConv2dNativeBackpropInput"},
    {"FusedBatchNorm", "_MklNativeFusedBatchNorm"},
    {"FusedBatchNormV2", "_MklNativeFusedBatchNormV2"},
    {"FusedBatchNormV3", "_MklNativeFusedBatchNormV3"},
    {"_FusedBatchNormEx", "_MklNativeFusedBatchNormEx"},  // with a relu, by TensorFlow's rewriting of a session's graph
    {"FusedBatchNormGrad", "_MklNativeFusedBatchNormGrad"},
    {"FusedBatchNormGradV2", "_MklNativeFusedBatchNormGradV2"},
    {"FusedBatchNormGradV3", "_MklNativeFusedBatchNormGradV3"},
    {"AvgPool", "_MklNativeAvgPool"},
    {"AvgPoolGrad", "_MklNativeAvgPoolGrad"}};

// Ops with other inputs: the lowering replaces them (`compiler/kernels/one_dnn_pooling`, `one_dnn_biases`).
constexpr Pair kMaxPoolPairs[] = {{"MaxPool", "_MklNativeMaxPool"},
                                  {"MaxPoolGrad", kPoolingGradient},
                                  {"_FusedConv2D", "_MklNativeFusedConv2D"},
                                  {"_FusedMatMul", "_MklNativeFusedMatMul"},
                                  {"Conv2DBackpropFilter", "_MklNativeConv2DBackpropFilterWithBias"}};

// Whether oneDNN has the op with these attributes: it has no batch normalisation of five axes.
bool SupportsOperandTypes(const std::string& op, const tensorflow::NodeDef& node) {
  const tensorflow::OpDef* op_def = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(op, &op_def).ok()) return false;
  return absl::c_all_of(op_def->attr(), [&node](const auto& attribute) {
    const auto found = node.attr().find(attribute.name());
    if (attribute.type() != "string" || !attribute.has_allowed_values() || found == node.attr().end()) return true;
    return absl::c_linear_search(attribute.allowed_values().list().s(), found->second.s());
  });
}

// Whether the CPU's kernels for a type of 16 bits are oneDNN's, which depends on its instructions.
bool HasOneDnnInstructions(tensorflow::DataType type) {
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION == 15
  return type == tensorflow::DT_BFLOAT16 && tensorflow::IsBF16SupportedByOneDNNOnThisCPU();
#else
  const bool is_half = type == tensorflow::DT_HALF || type == tensorflow::DT_BFLOAT16;
  return is_half && tensorflow::IsDataTypeSupportedByOneDNNOnThisCPU(type);
#endif
}

}  // namespace

using namespace tensorflow;  // NOLINT: this file looks at TensorFlow's ops

bool UseOneDnnKernel(NodeDef* op) {
  const NodeDef& node = *op;
  if (!IsMKLEnabled()) return false;
  const auto found = absl::c_find_if(kDirectPairs, [&node](const Pair& pair) { return pair.op == node.op(); });
  if (found == std::end(kDirectPairs)) return false;
  const auto is = [&node](const char* name, const auto& accepts) {
    const auto value = node.attr().find(name);
    return value == node.attr().end() || accepts(value->second);
  };
  // For 16-bit floats, only ops without sums: sums use TensorFlow's kernels in float32, as on an IPU.
  const bool is_softmax = node.op() == "Softmax";
  const auto is_float = [is_softmax](const AttrValue& value) {
    return value.type() == DT_FLOAT || (is_softmax && HasOneDnnInstructions(value.type()));
  };
  // Channels last, and each sample and channel separately: the CPU's kernels refuse or change anything else.
  const auto is_last = [](const AttrValue& value) { return value.s() == "NHWC" || value.s() == "NDHWC"; };
  const auto is_window = [](const AttrValue& value) {
    const auto& sizes = value.list().i();
    return !sizes.empty() && sizes[0] == 1 && sizes[sizes.size() - 1] == 1;
  };
  // Gradients of convolutions with explicit padding: oneDNN's kernels leave it out of account.
  const auto is_told_by_name = [](const AttrValue& value) { return value.s() != "EXPLICIT"; };
  const bool is_gradient = absl::StrContains(node.op(), "Backprop");
  if (!is("T", is_float) || !is("U", is_float) || !is("data_format", is_last) || !is("ksize", is_window)) return false;
  if (is_gradient && !is("padding", is_told_by_name)) return false;
  if (!SupportsOperandTypes(std::string(found->one_dnn), node)) return false;
  op->set_op(std::string(found->one_dnn));
  AddNodeAttr(kLabelAttr, kNameChange, op);
  return true;
}

bool UsesOneDnnKernel(const NodeDef& node) {
  NodeDef copy = node;
  return UseOneDnnKernel(&copy);
}

std::string WithoutOneDnnPrefix(absl::string_view op) {
  for (const Pair& pair : kDirectPairs) {
    if (pair.one_dnn == op) return std::string(pair.op);
  }
  for (const Pair& pair : kMaxPoolPairs) {
    if (pair.one_dnn == op) return std::string(pair.op);
  }
  return std::string(op);
}

NodeDef WithoutOneDnnPrefix(NodeDef node) {
  if (node.op() == kPoolingGradient && node.input_size() > 3) node.mutable_input()->DeleteSubrange(3, 1);
  node.set_op(WithoutOneDnnPrefix(absl::string_view(node.op())));
  node.mutable_attr()->erase(kLabelAttr);
  // Attributes that only oneDNN's op has: TensorFlow would log an error for each.
  const OpDef* op_def = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(node.op(), &op_def).ok()) return node;
  std::vector<std::string> foreign;
  for (const auto& attribute : node.attr()) {
    const std::string& name = attribute.first;
    if (name[0] != '_' && FindAttr(name, *op_def) == nullptr) foreign.push_back(name);
  }
  for (const std::string& name : foreign) node.mutable_attr()->erase(name);
  return node;
}

}  // namespace tf_ipu_shim
