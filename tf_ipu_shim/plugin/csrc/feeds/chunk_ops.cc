// The host ops of a chunked loop, which runs several iterations in one XLA program (see `compiler/loops/chunks.py`).
// They fetch the infeed elements of the next iterations at once, and enqueue each iteration's results to the outfeed.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "feeds/dataset_op.h"
#include "feeds/infeed_fetcher.h"
#include "feeds/infeed_source.h"
#include "feeds/outfeeds.h"
#include "tensorflow/core/common_runtime/input_colocation_exemption_registry.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"
#include "tensorflow/core/platform/env_time.h"
#include "tensorflow/core/util/batch_util.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops

// A chunk should not keep results from the host longer than this.
constexpr uint64_t kChunkMicros = 20000;
constexpr int64_t kFirstChunk = 4;

REGISTER_OP("IpuChunkBegin")
    .Input("done: int64")
    .Input("total: int64")
    .Input("iterators: N * resource")
    .Output("count: int32")
    .Output("next: int64")
    .Output("components: output_types")
    .Attr("N: int >= 0 = 0")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("output_types: list(type) >= 0")
    .Attr("output_shapes: list(shape) >= 0")
    .Attr("chunk: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      std::vector<PartialTensorShape> shapes;
      int64_t chunk;
      TF_RETURN_IF_ERROR(context->GetAttr("output_shapes", &shapes));
      TF_RETURN_IF_ERROR(context->GetAttr("chunk", &chunk));
      context->set_output(0, context->Scalar());
      context->set_output(1, context->Scalar());
      for (size_t i = 0; i < shapes.size(); ++i) {
        shape_inference::ShapeHandle shape;
        TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shapes[i], &shape));
        TF_RETURN_IF_ERROR(context->Concatenate(context->Vector(chunk), shape, &shape));
        context->set_output(2 + i, shape);
      }
      return OkStatus();
    });
// Runs on the IPU's device, whose kernels find the iterator on the host: without soft placement TensorFlow cannot colocate
// the two.
REGISTER_INPUT_COLOCATION_EXEMPTION("IpuChunkBegin");

// The trip count of a loop: it runs while each counter, which increases by one, is below its limit. `most`: no more
// than that.
REGISTER_OP("IpuLoopTotal")
    .Input("counters: T")
    .Input("limits: T")
    .Output("output: int64")
    .Attr("T: list({int32, int64}) >= 1")
    .Attr("most: int = -1")
    .SetShapeFn(shape_inference::ScalarShape);

REGISTER_OP("IpuOutfeedEnqueueChunk")
    .Input("count: int32")
    .Input("inputs: output_types")
    .Attr("output_types: list(type) >= 0")
    .Attr("outfeed_mode: {'all', 'get_last'} = 'all'")
    .Attr("feed_id: string")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class ChunkBeginOp : public DatasetOp {
 public:
  explicit ChunkBeginOp(OpKernelConstruction* context) : DatasetOp(context) {
    OP_REQUIRES_OK(context, source_.Init(context));
    OP_REQUIRES_OK(context, context->GetAttr("chunk", &chunk_));
    fetcher_ = std::make_unique<InfeedFetcher>(chunk_);
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &shapes_));
    OP_REQUIRES(context, chunk_ <= std::numeric_limits<int32_t>::max(),
                errors::InvalidArgument(name(), ": chunks of ", chunk_, " iterations"));
    OP_REQUIRES(context, static_cast<int>(shapes_.size()) == context->num_outputs() - 2,
                errors::InvalidArgument(name(), " has ", context->num_outputs() - 2, " components and ",
                                        shapes_.size(), " shapes"));
    element_types_.assign(context->output_types().begin() + 2, context->output_types().end());
  }

 protected:
  Status DoCompute(OpKernelContext* context) override {
    for (int i : {0, 1}) {
      const TensorShape& shape = context->input(i).shape();
      if (!TensorShapeUtils::IsScalar(shape)) {
        return errors::InvalidArgument(name(), " takes a number, not ", shape.DebugString());
      }
    }
    const int64_t done = context->input(0).scalar<int64_t>()(), total = context->input(1).scalar<int64_t>()();
    if (done < 0 || done >= total) {
      return errors::InvalidArgument(name(), ": ", done, " of ", total, " iterations are done");
    }
    int64_t wanted = std::min<int64_t>(total - done, WantedNow(done));
    std::vector<Tensor*> stacked(shapes_.size());
    for (size_t i = 0; i < shapes_.size(); ++i) {
      TensorShape shape;
      if (!shapes_[i].AsTensorShape(&shape)) return errors::Internal(name(), " has elements of unknown shape");
      TF_RETURN_IF_ERROR(shape.InsertDimWithStatus(0, chunk_));
      TF_RETURN_IF_ERROR(context->allocate_output(2 + i, shape, &stacked[i]));
    }
    if (source_.exists()) TF_RETURN_IF_ERROR(Fetch(context, done, total, stacked, &wanted));
    Tensor* count = nullptr;
    Tensor* next = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(0, TensorShape({}), &count));
    TF_RETURN_IF_ERROR(context->allocate_output(1, TensorShape({}), &next));
    count->scalar<int32_t>()() = static_cast<int32_t>(wanted);
    next->scalar<int64_t>()() = done + wanted;
    mutex_lock lock(mutex_);
    last_ = wanted;
    last_done_ = done;
    began_ = EnvTime::NowMicros();
    return OkStatus();
  }

 private:
  // The number of iterations that should take little time at the speed of the last chunk.
  int64_t WantedNow(int64_t done) {
    mutex_lock lock(mutex_);
    if (last_ > 0 && done == last_done_ + last_) {
      const uint64_t each = std::max<uint64_t>(1, (EnvTime::NowMicros() - began_) / last_);
      // Not at once to the most: the first chunk's time holds XLA's compilation, and any may be disturbed.
      wanted_ = std::clamp<int64_t>(kChunkMicros / each, std::max<int64_t>(1, wanted_ / 4), 4 * wanted_);
    }
    return wanted_ = std::min(wanted_, chunk_);
  }

  // Fewer elements if no more are ready, or if the dataset ends or fails: the next call then reports the end.
  Status Fetch(OpKernelContext* context, int64_t done, int64_t total, const std::vector<Tensor*>& stacked,
               int64_t* count) {
    if (done == 0) {
      core::RefCountPtr<data::IteratorResource> iterator;
      TF_RETURN_IF_ERROR(source_.Find(context, 1, &iterator));
      fetcher_->Begin(context, std::move(iterator), source_.End(), total);
    }
    std::vector<InfeedFetcher::Element> elements;
    TF_RETURN_IF_ERROR(source_.Named(fetcher_->Take(context->cancellation_manager(), *count, &elements)));
    *count = elements.size();
    for (size_t at = 0; at < elements.size(); ++at) {
      TF_RETURN_IF_ERROR(CheckElement(name(), elements[at], element_types_));
      for (size_t i = 0; i < stacked.size(); ++i) {
        CountToIpu(context, elements[at][i].TotalBytes());
        TF_RETURN_IF_ERROR(batch_util::CopyElementToSlice(std::move(elements[at][i]), stacked[i], at));
      }
    }
    return OkStatus();
  }

  InfeedSource source_;
  int64_t chunk_ = 1;
  std::vector<PartialTensorShape> shapes_;
  DataTypeVector element_types_;
  mutex mutex_;
  int64_t wanted_ TF_GUARDED_BY(mutex_) = kFirstChunk;
  int64_t last_ TF_GUARDED_BY(mutex_) = 0;
  int64_t last_done_ TF_GUARDED_BY(mutex_) = 0;
  uint64_t began_ TF_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<InfeedFetcher> fetcher_;
};

class LoopTotalOp : public OpKernel {
 public:
  explicit LoopTotalOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("most", &most_));
  }
  void Compute(OpKernelContext* context) override {
    int64_t least = most_ < 0 ? std::numeric_limits<int64_t>::max() : most_;
    const int conditions = context->num_inputs() / 2;
    for (int i = 0; i < conditions; ++i) {
      int64_t counter, limit;
      OP_REQUIRES_OK(context, Number(context->input(i), &counter));
      OP_REQUIRES_OK(context, Number(context->input(conditions + i), &limit));
      if (counter >= limit) {
        least = 0;
      } else if (counter >= 0 || limit <= std::numeric_limits<int64_t>::max() + counter) {
        least = std::min(least, limit - counter);
      }  // Else there are more than an int64 tells.
    }
    Tensor* total = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &total));
    total->scalar<int64_t>()() = least;
  }
  bool IsExpensive() override { return false; }

 private:
  Status Number(const Tensor& given, int64_t* number) {
    if (!TensorShapeUtils::IsScalar(given.shape())) {
      return errors::InvalidArgument(name(), " takes numbers, not ", given.shape().DebugString());
    }
    *number = given.dtype() == DT_INT64 ? given.scalar<int64_t>()() : given.scalar<int32_t>()();
    return OkStatus();
  }

  int64_t most_ = -1;
};

class OutfeedEnqueueChunkOp : public OpKernel {
 public:
  explicit OutfeedEnqueueChunkOp(OpKernelConstruction* context) : OpKernel(context) {
    string mode;
    OP_REQUIRES_OK(context, context->GetAttr("feed_id", &feed_id_));
    OP_REQUIRES_OK(context, context->GetAttr("outfeed_mode", &mode));
    only_last_ = mode == kOutfeedLast;
  }
  void Compute(OpKernelContext* context) override {
    const Tensor& first = context->input(0);
    OP_REQUIRES(context, TensorShapeUtils::IsScalar(first.shape()),
                errors::InvalidArgument(name(), " takes a number of elements, not ", first.shape().DebugString()));
    const int32_t count = first.scalar<int32_t>()();
    for (int i = 1; i < context->num_inputs(); ++i) {
      const TensorShape& shape = context->input(i).shape();
      OP_REQUIRES(context, count >= 0 && shape.dims() > 0 && shape.dim_size(0) >= count,
                  errors::InvalidArgument(name(), " is to send ", count, " elements of ", shape.DebugString()));
    }
    const std::shared_ptr<Outfeed> outfeed = Outfeeds::Get().Of(feed_id_);
    for (int32_t index = only_last_ ? std::max(count - 1, 0) : 0; index < count; ++index) {
      Outfeed::Element element;
      for (int i = 1; i < context->num_inputs(); ++i) {
        const Tensor& stacked = context->input(i);
        TensorShape shape = stacked.shape();
        shape.RemoveDim(0);
        Tensor value(stacked.dtype(), shape);
        CountFromIpu(context, value.TotalBytes());
        OP_REQUIRES_OK(context, batch_util::CopySliceToElement(stacked, &value, index));
        element.push_back(std::move(value));
      }
      outfeed->Put(std::move(element), only_last_, 0, 1, 0);
    }
  }
  bool IsExpensive() override { return false; }

 private:
  string feed_id_;
  bool only_last_ = false;
};

REGISTER_KERNEL_BUILDER(Name("IpuChunkBegin").Device("CPU"), ChunkBeginOp);
REGISTER_KERNEL_BUILDER(Name("IpuLoopTotal").Device("CPU"), LoopTotalOp);
REGISTER_KERNEL_BUILDER(Name("IpuOutfeedEnqueueChunk").Device("CPU"), OutfeedEnqueueChunkOp);

}  // namespace
}  // namespace tf_ipu_shim
