// The ops of `gen_ipu_ops`, under Graphcore's names: configure and query the driver. They run on the CPU.
#include <string>
#include <vector>

#include "protocol/driver_messages.h"
#include "programs/lowering_call.h"
#include "process/python_call.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "process/trace.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is TensorFlow ops

// All are stateful here, also those that Graphcore declares stateless, because their results change with the
// configuration and the environment. TensorFlow computes a stateless op without inputs only once.
REGISTER_OP("IpuConfigureHardware").Attr("config: string").SetIsStateful().SetShapeFn(shape_inference::NoOutputs);
REGISTER_OP("IpuClearAllXlaCompilationCaches").SetIsStateful().SetShapeFn(shape_inference::NoOutputs);
REGISTER_OP("IpuResetDevices").SetIsStateful().SetShapeFn(shape_inference::NoOutputs);
REGISTER_OP("IpuResetSeed")
    .Attr("device: string")
    .Attr("seed: int")
    .Attr("identical_replicas: bool = false")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

Status UnknownLength(shape_inference::InferenceContext* context) {
  context->set_output(0, context->Vector(shape_inference::InferenceContext::kUnknownDim));
  return OkStatus();
}

Status OneElement(shape_inference::InferenceContext* context) {
  context->set_output(0, context->Vector(1));
  return OkStatus();
}

REGISTER_OP("IpuEventTrace").Output("out: string").SetIsStateful().SetShapeFn(UnknownLength);
REGISTER_OP("IpuModelUsed").Output("out: bool").SetIsStateful().SetShapeFn(OneElement);
REGISTER_OP("IpuGetConfiguration").Output("out: string").SetIsStateful().SetShapeFn(UnknownLength);
REGISTER_OP("IpuGetNumDevices")
    .Attr("device: string")
    .Output("out: int64")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape);
REGISTER_OP("IpuUseSyntheticDataFor")
    .Attr("synthetic_data_category: int")
    .Output("out: bool")
    .SetIsStateful()
    .SetShapeFn(OneElement);

const std::string& TextOf(const std::string& text) { return text; }
const std::string& TextOf(const ByteString& bytes) { return bytes.value; }

template <typename Strings>
void OutputStrings(OpKernelContext* context, const Strings& values) {
  Tensor* output = nullptr;
  OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({static_cast<int64_t>(values.size())}), &output));
  auto flat = output->flat<tstring>();
  int64_t i = 0;
  for (const auto& value : values) flat(i++) = TextOf(value);
}

void OutputOneBool(OpKernelContext* context, bool value) {
  Tensor* output = nullptr;
  OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({1}), &output));
  output->flat<bool>()(0) = value;
}

Status OrdinalOf(const string& device, int32_t* ordinal) {
  DeviceNameUtils::ParsedName parsed;
  if (!DeviceNameUtils::ParseFullOrLocalName(device, &parsed) || !parsed.has_id ||
      (parsed.has_type && parsed.type != "IPU")) {
    return errors::InvalidArgument("Invalid device name ", device,
                                   ": give an IPU device with its number, such as /device:IPU:0");
  }
  *ordinal = parsed.id;
  return OkStatus();
}

class IpuEventTraceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { OutputStrings(context, TakeEvents()); }
};

class IpuConfigureHardwareOp : public OpKernel {
 public:
  explicit IpuConfigureHardwareOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("config", &order_.options.value));
  }
  void Compute(OpKernelContext* context) override {
    Nothing answer;
    OP_REQUIRES_OK(context, CallPython<ConfigureCall>(order_, &answer));
  }

 private:
  ConfigureOrder order_;
};

class IpuClearAllXlaCompilationCachesOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override { NewEpoch(); }
};

class IpuResetDevicesOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Nothing answer;
    OP_REQUIRES_OK(context, CallPython<ResetDevicesCall>({}, &answer));
  }
};

class IpuResetSeedOp : public OpKernel {
 public:
  explicit IpuResetSeedOp(OpKernelConstruction* context) : OpKernel(context) {
    string device;
    OP_REQUIRES_OK(context, context->GetAttr("device", &device));
    OP_REQUIRES_OK(context, context->GetAttr("seed", &order_.seed));
    OP_REQUIRES_OK(context, context->GetAttr("identical_replicas", &order_.identical_replicas));
    OP_REQUIRES_OK(context, OrdinalOf(device, &order_.ordinal));
  }
  void Compute(OpKernelContext* context) override {
    Nothing answer;
    OP_REQUIRES_OK(context, CallPython<ResetSeedCall>(order_, &answer));
  }

 private:
  SeedOrder order_;
};

class IpuModelUsedOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    YesOrNo answer;
    OP_REQUIRES_OK(context, CallPython<ModelUsedCall>({}, &answer));
    OutputOneBool(context, answer.yes);
  }
};

class IpuGetConfigurationOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Configurations answer;
    OP_REQUIRES_OK(context, CallPython<ConfigurationCall>({}, &answer));
    OutputStrings(context, answer.options);
  }
};

class IpuGetNumDevicesOp : public OpKernel {
 public:
  explicit IpuGetNumDevicesOp(OpKernelConstruction* context) : OpKernel(context) {
    string device;
    OP_REQUIRES_OK(context, context->GetAttr("device", &device));
    OP_REQUIRES_OK(context, OrdinalOf(device, &question_.ordinal));
  }
  void Compute(OpKernelContext* context) override {
    DeviceSize answer;
    OP_REQUIRES_OK(context, CallPython<NumIpusCall>(question_, &answer));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &output));
    output->scalar<int64_t>()() = answer.ipus;
  }

 private:
  DeviceQuestion question_;
};

class IpuUseSyntheticDataForOp : public OpKernel {
 public:
  explicit IpuUseSyntheticDataForOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("synthetic_data_category", &category_));
    OP_REQUIRES(context, category_ >= 0 && category_ <= kLastCategory,
                errors::InvalidArgument("Invalid synthetic data category: ", category_, ". There are 0 (seed), 1 "
                                        "(infeed), 2 (outfeed), 3 (host embedding), 4 (parameters), 5 (unknown)"));
  }
  void Compute(OpKernelContext* context) override {
    YesOrNo answer;
    OP_REQUIRES_OK(context, CallPython<SyntheticDataCall>({category_}, &answer));
    OutputOneBool(context, answer.yes);
  }

 private:
  static constexpr int kLastCategory = 5;
  int category_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("IpuEventTrace").Device(DEVICE_CPU), IpuEventTraceOp);
REGISTER_KERNEL_BUILDER(Name("IpuConfigureHardware").Device(DEVICE_CPU), IpuConfigureHardwareOp);
REGISTER_KERNEL_BUILDER(Name("IpuClearAllXlaCompilationCaches").Device(DEVICE_CPU), IpuClearAllXlaCompilationCachesOp);
REGISTER_KERNEL_BUILDER(Name("IpuResetDevices").Device(DEVICE_CPU), IpuResetDevicesOp);
REGISTER_KERNEL_BUILDER(Name("IpuResetSeed").Device(DEVICE_CPU), IpuResetSeedOp);
REGISTER_KERNEL_BUILDER(Name("IpuModelUsed").Device(DEVICE_CPU), IpuModelUsedOp);
REGISTER_KERNEL_BUILDER(Name("IpuGetConfiguration").Device(DEVICE_CPU), IpuGetConfigurationOp);
REGISTER_KERNEL_BUILDER(Name("IpuGetNumDevices").Device(DEVICE_CPU), IpuGetNumDevicesOp);
REGISTER_KERNEL_BUILDER(Name("IpuUseSyntheticDataFor").Device(DEVICE_CPU), IpuUseSyntheticDataForOp);

}  // namespace
}  // namespace tf_ipu_shim
