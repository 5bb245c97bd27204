// Finds the iterator behind an infeed, and transfers its elements to an IPU. Feed ops run on the IPU's TensorFlow
// device, although they are host work, so that a program without host ops need not be partitioned.
#pragma once

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"

namespace tf_ipu_shim {

// Reads the attributes `N`, `container` and `shared_name` of an op with inputs `iterators: N * resource`. The iterator
// is the op's last input, or is on the host under that name.
class InfeedSource {
 public:
  tensorflow::Status Init(tensorflow::OpKernelConstruction* construction);
  // Whether the infeed exists.
  bool exists() const { return inputs_ > 0 || !name_.empty(); }
  // `replicas`: the number of the program's replicas that read elements. A named infeed is refused to programs with
  // other numbers.
  tensorflow::Status Find(tensorflow::OpKernelContext* context, int64_t replicas,
                          tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource>* iterator) const;
  // Gets the next element. Cancelling the step also ends the dataset; Ctrl-C does not.
  tensorflow::Status Next(tensorflow::OpKernelContext* context, tensorflow::data::IteratorResource* iterator,
                          std::vector<tensorflow::Tensor>* element, bool* end) const;
  // The error for an exhausted dataset.
  tensorflow::Status End() const;
  // Adds the infeed's name to a dataset's error, except for end of data and cancellation.
  tensorflow::Status Named(const tensorflow::Status& status) const;

 private:
  std::string Name() const;

  int64_t inputs_ = 0;
  std::string container_, name_;
};

// Registers an iterator (or none) under an infeed's name and returns the previous one.
tensorflow::Status PutInfeed(tensorflow::ResourceMgr* resources, const std::string& name,
                             tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource> iterator,
                             tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource>* before);

// Selects the iterator from which an infeed's elements come; an empty name selects the infeed's own.
void SelectIterator(const std::string& infeed, const std::string& iterator);

// Checks an element's dtypes against the op's outputs: TensorFlow aborts the process on a mismatch.
tensorflow::Status CheckElement(const std::string& op, const std::vector<tensorflow::Tensor>& element,
                                const tensorflow::DataTypeVector& types);

// Counts bytes transferred to or from an IPU, if the op is placed on one.
void CountToIpu(tensorflow::OpKernelContext* context, int64_t bytes);
void CountFromIpu(tensorflow::OpKernelContext* context, int64_t bytes);

// Copies a value to the memory of `chip`, if the op is on an IPU and the dtype allows it; else returns the value
// itself.
tensorflow::Status CopyToIpu(tensorflow::OpKernelContext* context, int64_t chip, const tensorflow::Tensor& value,
                             tensorflow::Tensor* copy);

}  // namespace tf_ipu_shim
