// The iterator behind an infeed, and its elements' way to an IPU. The ops of feeds run on the IPU's TensorFlow device,
// although they are the host's part: a program with nothing on another device is not partitioned.
#pragma once

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"

namespace tf_ipu_shim {

// Reads the attributes `N`, `container` and `shared_name` of an op with inputs `iterators: N * resource`: the iterator is
// the op's last input, or has that name on the host.
class InfeedSource {
 public:
  tensorflow::Status Init(tensorflow::OpKernelConstruction* construction);
  // Whether there is an infeed at all.
  bool exists() const { return inputs_ > 0 || !name_.empty(); }
  tensorflow::Status Find(tensorflow::OpKernelContext* context,
                          tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource>* iterator) const;
  // Takes an element. What cancels the step cancels the dataset, which then has ended for good; Ctrl-C does not.
  tensorflow::Status Next(tensorflow::OpKernelContext* context, tensorflow::data::IteratorResource* iterator,
                          std::vector<tensorflow::Tensor>* element, bool* end) const;
  // What is said where the dataset has ended.
  tensorflow::Status End() const;
  // An error of the dataset, with the infeed that it is behind. The end and cancellations are none.
  tensorflow::Status Named(const tensorflow::Status& status) const;

 private:
  std::string Name() const;

  int64_t inputs_ = 0;
  std::string container_, name_;
};

// Puts an iterator, or none, where programs find the infeed of a name, and gives the one that was there.
tensorflow::Status PutInfeed(tensorflow::ResourceMgr* resources, const std::string& name,
                             tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource> iterator,
                             tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource>* before);

// Has programs that take elements of an infeed take those of the iterator of another name; of its own if that is empty.
void SelectIterator(const std::string& infeed, const std::string& iterator);

// Whether an element of a dataset is what an op gives: TensorFlow aborts the process where a result is of another type.
tensorflow::Status CheckElement(const std::string& op, const std::vector<tensorflow::Tensor>& element,
                                const tensorflow::DataTypeVector& types);

// Counts what goes to an IPU, and what comes from it, where an op is on one.
void CountToIpu(tensorflow::OpKernelContext* context, int64_t bytes);
void CountFromIpu(tensorflow::OpKernelContext* context, int64_t bytes);

// A copy in the memory of the IPU `chip`, where the op is on an IPU and the value can be there; else the value itself.
tensorflow::Status CopyToIpu(tensorflow::OpKernelContext* context, int64_t chip, const tensorflow::Tensor& value,
                             tensorflow::Tensor* copy);

}  // namespace tf_ipu_shim
