// Ops that start, replace and delete an infeed's dataset iterator in eager execution, and in sessions learn from
// TensorFlow's own op which iterator has started.
//
// Deleting an iterator waits for the thread that tunes its dataset. TensorFlow wakes that thread before it marks the
// dataset as cancelled, so the thread may sleep again. It sleeps for half of the iterator's lifetime, a minute at most
// (checked on 2.15.1 and 2.21.0). So a separate thread deletes iterators; otherwise a script that trains again would
// wait for its previous training. Sessions keep TensorFlow's own ops, because their devices, which an iterator uses
// until it is deleted, end with them.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "feeds/infeed_replicas.h"
#include "feeds/infeed_source.h"
#include "process/deletions.h"
#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops
using Iterator = core::RefCountPtr<data::IteratorResource>;

// An upper limit for the wait if no thread sleeps.
constexpr std::chrono::milliseconds kLetGo(50);

// Releases an iterator. Its threads have ended then, except for one that sleeps.
void ReleaseIterator(Iterator iterator, bool waits) {
  if (iterator == nullptr) return;
  DeleteElsewhere([held = iterator.release()] { held->Unref(); }, waits ? kLetGo : std::chrono::milliseconds(0));
}

Status FeedName(const Tensor& feed_id, std::string* name) {
  if (!TensorShapeUtils::IsScalar(feed_id.shape())) {
    return errors::InvalidArgument("An infeed has a name, not ", feed_id.shape().DebugString());
  }
  *name = feed_id.scalar<tstring>()();
  return OkStatus();
}

// Lets an infeed begin a dataset. Its name is an input, as TensorFlow keeps a kernel for each value of an attribute.
REGISTER_OP("IpuStartInfeed")
    .Input("dataset: variant")
    .Input("feed_id: string")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class StartInfeedOp : public OpKernel {
 public:
  explicit StartInfeedOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("output_types", &types_));
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &shapes_));
  }
  void Compute(OpKernelContext* context) override {
    data::DatasetBase* dataset = nullptr;
    std::string name;
    OP_REQUIRES_OK(context, data::GetDatasetFromVariantTensor(context->input(0), &dataset));
    OP_REQUIRES_OK(context, FeedName(context->input(1), &name));
    std::unique_ptr<FunctionLibraryDefinition> definitions;
    std::unique_ptr<ProcessFunctionLibraryRuntime> process;
    FunctionLibraryRuntime* library = nullptr;
    OP_REQUIRES_OK(context, context->function_library()->Clone(&definitions, &process, &library, true));
    Iterator iterator(new data::IteratorResource(context->env(), types_, shapes_, nullptr, std::move(definitions),
                                                 std::move(process), library));
    OP_REQUIRES_OK(context, iterator->SetIteratorFromDataset(context, dataset));
    Iterator before;
    const Status status = PutInfeed(context->resource_manager(), name, std::move(iterator), &before);
    ReleaseIterator(std::move(before), false);
    OP_REQUIRES_OK(context, status);
  }

 private:
  DataTypeVector types_;
  std::vector<PartialTensorShape> shapes_;
};

REGISTER_KERNEL_BUILDER(Name("IpuStartInfeed").Device("CPU"), StartInfeedOp);

// Fails if the infeed was never started: code that frees it expects it to exist.
REGISTER_OP("IpuInfeedStarted").Attr("feed_id: string").SetIsStateful().SetShapeFn(shape_inference::NoOutputs);

class InfeedStartedOp : public OpKernel {
 public:
  explicit InfeedStartedOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("feed_id", &feed_id_));
  }
  void Compute(OpKernelContext* context) override {
    ResourceMgr* resources = context->resource_manager();
    data::IteratorResource* iterator = nullptr;
    OP_REQUIRES(context, resources->Lookup(resources->default_container(), feed_id_, &iterator).ok(),
                errors::NotFound("Infeed with id='", feed_id_, "' does not exist: it was not started in this session. ",
                                 "Run its `initializer` before its `deleter`."));
    iterator->Unref();
  }
  bool IsExpensive() override { return false; }

 private:
  string feed_id_;
};

REGISTER_KERNEL_BUILDER(Name("IpuInfeedStarted").Device("CPU"), InfeedStartedOp);

// Follows TensorFlow's own op that starts a session's iterator: programs with another number of replicas may use it now.
REGISTER_OP("IpuInfeedRestarted").Attr("feed_id: string").SetIsStateful().SetShapeFn(shape_inference::NoOutputs);

class InfeedRestartedOp : public OpKernel {
 public:
  explicit InfeedRestartedOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("feed_id", &feed_id_));
  }
  void Compute(OpKernelContext* context) override { ForgetInfeedReplicas(context->resource_manager(), feed_id_); }
  bool IsExpensive() override { return false; }

 private:
  string feed_id_;
};

REGISTER_KERNEL_BUILDER(Name("IpuInfeedRestarted").Device("CPU"), InfeedRestartedOp);

// Redirects programs that read an infeed to an iterator that was started under another name.
REGISTER_OP("IpuSelectIterator")
    .Input("feed_id: string")
    .Input("iterator_id: string")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class SelectIteratorOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    std::string infeed, iterator;
    OP_REQUIRES_OK(context, FeedName(context->input(0), &infeed));
    OP_REQUIRES_OK(context, FeedName(context->input(1), &iterator));
    SelectIterator(infeed, iterator);
  }
  bool IsExpensive() override { return false; }
};

REGISTER_KERNEL_BUILDER(Name("IpuSelectIterator").Device("CPU"), SelectIteratorOp);

// Frees an infeed that no program reads any more, and the threads of its dataset. It may not have been started.
REGISTER_OP("IpuDeleteInfeed")
    .Input("feed_id: string")
    // Whether it returns only once the dataset's threads are gone, but for one that sleeps.
    .Attr("waits: bool = true")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class DeleteInfeedOp : public OpKernel {
 public:
  explicit DeleteInfeedOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("waits", &waits_));
  }
  void Compute(OpKernelContext* context) override {
    std::string name;
    OP_REQUIRES_OK(context, FeedName(context->input(0), &name));
    Iterator before;
    SelectIterator(name, "");
    OP_REQUIRES_OK(context, PutInfeed(context->resource_manager(), name, nullptr, &before));
    ReleaseIterator(std::move(before), waits_);
  }
  bool IsExpensive() override { return false; }

 private:
  bool waits_ = true;
};

REGISTER_KERNEL_BUILDER(Name("IpuDeleteInfeed").Device("CPU"), DeleteInfeedOp);

}  // namespace
}  // namespace tf_ipu_shim
