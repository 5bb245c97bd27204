// Outfeeds: what a program sends to the host while it runs. One queue a feed id, for the whole process: a program of
// one session fills it, any thread, session or eager call empties it.
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arena.h"
#include "in_flight.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/batch_util.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops

class Outfeed {
 public:
  void Put(std::vector<Tensor> element, bool only_last) {
    mutex_lock lock(mutex_);
    if (only_last) elements_.clear();
    elements_.push_back(std::move(element));
  }
  std::deque<std::vector<Tensor>> TakeAll() {
    mutex_lock lock(mutex_);
    std::deque<std::vector<Tensor>> taken;
    taken.swap(elements_);
    return taken;
  }
  bool Last(std::vector<Tensor>* element) {
    mutex_lock lock(mutex_);
    if (elements_.empty()) return false;
    *element = elements_.back();
    return true;
  }

 private:
  mutex mutex_;
  std::deque<std::vector<Tensor>> elements_ TF_GUARDED_BY(mutex_);
};

class Outfeeds {
 public:
  static Outfeeds& Get() {
    static auto* outfeeds = new Outfeeds;
    return *outfeeds;
  }
  std::shared_ptr<Outfeed> Of(const string& feed_id) {
    mutex_lock lock(mutex_);
    std::shared_ptr<Outfeed>& outfeed = by_id_[feed_id];
    if (outfeed == nullptr) outfeed = std::make_shared<Outfeed>();
    return outfeed;
  }
  bool Delete(const string& feed_id) {
    mutex_lock lock(mutex_);
    return by_id_.erase(feed_id) > 0;
  }

 private:
  mutex mutex_;
  std::map<string, std::shared_ptr<Outfeed>> by_id_ TF_GUARDED_BY(mutex_);
};

constexpr char kAll[] = "all";
constexpr char kLast[] = "get_last";

REGISTER_OP("PopDatastreamOutfeedEnqueue")
    .Input("inputs: output_types")
    .Attr("output_types: list(type) >= 0")
    .Attr("output_shapes: list(shape) >= 0")
    .Attr("outfeed_mode: {'all', 'get_last'} = 'all'")
    .Attr("feed_id: string")
    .Attr("prefetch_depth: int = 1")
    .Attr("optimise_latency: bool = false")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

REGISTER_OP("PopDatastreamOutfeedDequeue")
    .Output("outputs: output_types")
    .Attr("output_types: list(type) >= 0")
    .Attr("output_shapes: list(shape) >= 0")
    .Attr("device_ordinal: int = 0")
    .Attr("feed_id: string")
    .Attr("outfeed_mode: {'all', 'get_last'} = 'all'")
    .Attr("prefetch_depth: int = 1")
    .Attr("warn_when_unconnected: bool = true")
    .Attr("optimise_latency: bool = false")
    .Attr("wait_for_completion: bool = false")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      std::vector<PartialTensorShape> shapes;
      string mode;
      TF_RETURN_IF_ERROR(context->GetAttr("output_shapes", &shapes));
      TF_RETURN_IF_ERROR(context->GetAttr("outfeed_mode", &mode));
      for (int i = 0; i < context->num_outputs() && i < static_cast<int>(shapes.size()); ++i) {
        shape_inference::ShapeHandle shape;
        TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shapes[i], &shape));
        if (mode == kAll) {
          TF_RETURN_IF_ERROR(context->Concatenate(context->Vector(context->UnknownDim()), shape, &shape));
        }
        context->set_output(i, shape);
      }
      return OkStatus();
    });

REGISTER_OP("IPUDeleteOutfeed")
    .Attr("feed_id: string")
    .Attr("device_ordinal: int = 0")
    .Attr("asynchronous: bool = false")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

class OutfeedEnqueueOp : public OpKernel {
 public:
  explicit OutfeedEnqueueOp(OpKernelConstruction* context) : OpKernel(context) {
    string mode;
    OP_REQUIRES_OK(context, context->GetAttr("feed_id", &feed_id_));
    OP_REQUIRES_OK(context, context->GetAttr("outfeed_mode", &mode));
    only_last_ = mode == kLast;
  }
  void Compute(OpKernelContext* context) override {
    std::vector<Tensor> element;
    for (int i = 0; i < context->num_inputs(); ++i) element.push_back(context->input(i));
    Outfeeds::Get().Of(feed_id_)->Put(std::move(element), only_last_);
  }
  bool IsExpensive() override { return false; }

 private:
  string feed_id_;
  bool only_last_ = false;
};

class OutfeedDequeueOp : public OpKernel {
 public:
  explicit OutfeedDequeueOp(OpKernelConstruction* context) : OpKernel(context) {
    string mode;
    OP_REQUIRES_OK(context, context->GetAttr("feed_id", &feed_id_));
    OP_REQUIRES_OK(context, context->GetAttr("outfeed_mode", &mode));
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &shapes_));
    OP_REQUIRES_OK(context, context->GetAttr("device_ordinal", &device_ordinal_));
    OP_REQUIRES_OK(context, context->GetAttr("wait_for_completion", &wait_for_completion_));
    OP_REQUIRES(context, device_ordinal_ >= 0 && device_ordinal_ < kMaxDevices,
                errors::InvalidArgument("There is no device /device:IPU:", device_ordinal_));
    only_last_ = mode == kLast;
  }

  void Compute(OpKernelContext* context) override {
    if (wait_for_completion_) {
      OP_REQUIRES(context, WaitUntilIdle(device_ordinal_, context->cancellation_manager()),
                  errors::Cancelled("Dequeuing outfeed ", feed_id_, " was cancelled while a program ran"));
    }
    const std::shared_ptr<Outfeed> outfeed = Outfeeds::Get().Of(feed_id_);
    if (only_last_) {
      std::vector<Tensor> element;
      OP_REQUIRES(context, outfeed->Last(&element),
                  errors::FailedPrecondition("Outfeed ", feed_id_,
                                             " is empty: no program has enqueued to it yet. Run the program first."));
      for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, element[i]);
      return;
    }
    const std::deque<std::vector<Tensor>> elements = outfeed->TakeAll();
    for (int i = 0; i < context->num_outputs(); ++i) {
      TensorShape shape;
      if (elements.empty()) {
        OP_REQUIRES(context, shapes_[i].AsTensorShape(&shape),
                    errors::Internal("Outfeed ", feed_id_, " has an element of unknown shape"));
      } else {
        shape = elements.front()[i].shape();
      }
      OP_REQUIRES_OK(context, shape.InsertDimWithStatus(0, elements.size()));
      Tensor* stacked = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, shape, &stacked));
      for (size_t index = 0; index < elements.size(); ++index) {
        OP_REQUIRES_OK(context, batch_util::CopyElementToSlice(elements[index][i], stacked, index));
      }
    }
  }

 private:
  string feed_id_;
  std::vector<PartialTensorShape> shapes_;
  int64_t device_ordinal_ = 0;
  bool only_last_ = false, wait_for_completion_ = false;
};

class DeleteOutfeedOp : public OpKernel {
 public:
  explicit DeleteOutfeedOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("feed_id", &feed_id_));
  }
  void Compute(OpKernelContext* context) override {
    OP_REQUIRES(context, Outfeeds::Get().Delete(feed_id_),
                errors::NotFound("Outfeed with id='", feed_id_,
                                 "' not found: no program has enqueued to it, or it was deleted before."));
  }

 private:
  string feed_id_;
};

REGISTER_KERNEL_BUILDER(Name("PopDatastreamOutfeedEnqueue").Device("CPU"), OutfeedEnqueueOp);
REGISTER_KERNEL_BUILDER(Name("PopDatastreamOutfeedDequeue").Device("CPU"), OutfeedDequeueOp);
REGISTER_KERNEL_BUILDER(Name("IPUDeleteOutfeed").Device("CPU"), DeleteOutfeedOp);

}  // namespace

bool DeleteOutfeed(const std::string& feed_id) { return Outfeeds::Get().Delete(feed_id); }

}  // namespace tf_ipu_shim

// Drops an outfeed whose Python object is gone; that it was never used is no error.
extern "C" void ipu_delete_outfeed(const char* feed_id) { tf_ipu_shim::DeleteOutfeed(feed_id); }
