// Declares the type of variant tensors that hold datasets.
#pragma once

#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace data {

class DatasetBase;

// From tensorflow/core/framework/dataset.h, which is slow to compile.
Status StoreDatasetInVariantTensor(DatasetBase* dataset, Tensor* tensor);

namespace {

// Stands for the class of this name in TensorFlow's `dataset.cc`, which no header declares: variants tell types by the
// hash of their name. Checked on 2.15.1 and 2.21.0; `check.cc` compares it with the type of a variant.
class DatasetVariantWrapper {};

}  // namespace
}  // namespace data
}  // namespace tensorflow
