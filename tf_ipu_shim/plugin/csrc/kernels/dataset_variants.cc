// Registers copies of dataset variants between host and IPU device.
//
// Datasets created on an IPU device need them. A dataset is a variant. TensorFlow copies variants between devices with
// a function registered for their type. It registers none for datasets, because no other device runs their ops. Here
// host and IPU share memory, so a copy is another reference.
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tf_private/dataset_variant.h"

namespace tf_ipu_shim {
namespace {

bool RegisterDatasetCopies() {
  using tensorflow::Variant;
  using tensorflow::VariantDeviceCopyDirection;
  const auto share = [](const Variant& from, Variant* to,
                        tensorflow::UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn) {
    *to = from;
    return tensorflow::OkStatus();
  };
  const auto type = tensorflow::TypeIndex::Make<tensorflow::data::DatasetVariantWrapper>();
  for (const auto direction : {VariantDeviceCopyDirection::HOST_TO_DEVICE, VariantDeviceCopyDirection::DEVICE_TO_HOST,
                               VariantDeviceCopyDirection::DEVICE_TO_DEVICE}) {
    auto* registry = tensorflow::UnaryVariantOpRegistry::Global();
    if (registry->GetDeviceCopyFn(direction, type) == nullptr) {
      registry->RegisterDeviceCopyFn(direction, type, share);
    }
  }
  return true;
}

const bool dataset_copies_registered = RegisterDatasetCopies();

}  // namespace
}  // namespace tf_ipu_shim
