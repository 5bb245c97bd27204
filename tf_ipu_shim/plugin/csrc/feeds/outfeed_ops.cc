// The ops that enqueue to, dequeue from and delete outfeeds.
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/arena.h"
#include "device/first_use.h"
#include "feeds/in_flight.h"
#include "feeds/infeed_source.h"
#include "feeds/outfeeds.h"
#include "programs/program_runs.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/util/batch_util.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops
using Element = Outfeed::Element;

REGISTER_OP("PopDatastreamOutfeedEnqueue")
    .Input("inputs: output_types")
    .Attr("output_types: list(type) >= 0")
    .Attr("output_shapes: list(shape) >= 0")
    .Attr("outfeed_mode: {'all', 'get_last'} = 'all'")
    .Attr("feed_id: string")
    .Attr("prefetch_depth: int = 1")
    .Attr("optimise_latency: bool = false")
    // The index of the sending replica and the number of replicas, as set by the lowering.
    .Attr("replica: int >= 0 = 0")
    .Attr("replicas: int >= 1 = 1")
    .Attr("run_group: string = ''")
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
    // Whether there may be more than one: an element then has a further axis, and its rank is not known beforehand.
    .Attr("may_be_replicated: bool = false")
    // Whether programs send nothing, as the data of outfeeds are made up.
    .Attr("is_synthetic: bool = false")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      std::vector<PartialTensorShape> shapes;
      string mode;
      bool may_be_replicated;
      TF_RETURN_IF_ERROR(context->GetAttr("may_be_replicated", &may_be_replicated));
      if (may_be_replicated) return shape_inference::UnknownShape(context);
      TF_RETURN_IF_ERROR(context->GetAttr("output_shapes", &shapes));
      TF_RETURN_IF_ERROR(context->GetAttr("outfeed_mode", &mode));
      for (int i = 0; i < context->num_outputs() && i < static_cast<int>(shapes.size()); ++i) {
        shape_inference::ShapeHandle shape;
        TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shapes[i], &shape));
        if (mode == kOutfeedAll) {
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
    OP_REQUIRES_OK(context, replica_.Init(context));
    only_last_ = mode == kOutfeedLast;
  }
  void Compute(OpKernelContext* context) override {
    Element element;
    for (int i = 0; i < context->num_inputs(); ++i) {
      // A copy in host memory, which frees the IPU's.
      element.push_back(tensor::DeepCopy(context->input(i)));
      CountFromIpu(context, context->input(i).TotalBytes());
    }
    Outfeeds::Get().Of(feed_id_)->Put(std::move(element), only_last_, replica_.index(), replica_.count(),
                                       replica_.run());
  }
  bool IsExpensive() override { return false; }

 private:
  string feed_id_;
  bool only_last_ = false;
  ReplicaOfProgram replica_;
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
    OP_REQUIRES_OK(context, context->GetAttr("is_synthetic", &is_synthetic_));
    OP_REQUIRES(context, device_ordinal_ >= 0 && device_ordinal_ < kMaxDevices,
                errors::InvalidArgument("There is no device /device:IPU:", device_ordinal_));
    OP_REQUIRES(context, static_cast<int>(shapes_.size()) == num_outputs(),
                errors::InvalidArgument(name(), " has ", num_outputs(), " outputs and ", shapes_.size(), " shapes"));
    only_last_ = mode == kOutfeedLast;
  }

  void Compute(OpKernelContext* context) override {
    if (wait_for_completion_) {
      OP_REQUIRES(context, WaitUntilIdle(device_ordinal_, context->cancellation_manager()),
                  errors::Cancelled("Dequeuing outfeed ", feed_id_, " was cancelled while a program ran"));
    }
    const std::shared_ptr<Outfeed> outfeed = Outfeeds::Get().Of(feed_id_);
    if (only_last_) {
      OP_REQUIRES(context, !is_synthetic_,
                  errors::FailedPrecondition(
                      "Trying to get the last value from outfeed queue ", feed_id_, " when using synthethic data. This is ",
                      "not supported. Use IPUOutfeedMode.ALL, which returns no elements, or leave outfeed out of ",
                      "--synthetic_data_categories in TF_POPLAR_FLAGS."));
      const std::vector<Element> last = outfeed->Last();
      const Outfeed::Zeros zeros = outfeed->LastZeros();
      if (last.empty() && (zeros.rows > 0 || ReturnsZeros(device_ordinal_))) {
        OP_REQUIRES_OK(context, OutputZeros(context, {}, zeros.replicas));
        return;
      }
      OP_REQUIRES(context, !last.empty(),
                  errors::FailedPrecondition("Trying to get the last value from an outfeed queue that is empty: no ",
                                             "program has enqueued to ", feed_id_, " yet. Run the program first."));
      for (const Element& element : last) OP_REQUIRES_OK(context, CheckTypes(context, element));
      for (int i = 0; i < context->num_outputs(); ++i) {
        if (last.size() == 1) {
          context->set_output(i, last[0][i]);
        } else {
          OP_REQUIRES_OK(context, Stack(context, i, {static_cast<int64_t>(last.size())}, last[0][i].shape(),
                                        [&](size_t index) { return &last[index][i]; }));
        }
      }
      return;
    }
    const std::vector<std::deque<Element>> taken = outfeed->TakeAll();
    if (const Outfeed::Zeros zeros = outfeed->TakeZeros(); zeros.rows > 0 && taken.empty()) {
      OP_REQUIRES_OK(context, OutputZeros(context, {zeros.rows}, zeros.replicas));
      return;
    }
    for (const std::deque<Element>& of_replica : taken) {
      for (const Element& element : of_replica) OP_REQUIRES_OK(context, CheckTypes(context, element));
    }
    const size_t replicas = taken.size();
    const size_t rows = replicas == 0 ? 0 : taken[0].size();
    std::vector<int64_t> axes{static_cast<int64_t>(rows)};
    if (replicas > 1) axes.push_back(replicas);
    for (int i = 0; i < context->num_outputs(); ++i) {
      TensorShape shape;
      if (rows == 0) {
        OP_REQUIRES(context, shapes_[i].AsTensorShape(&shape),
                    errors::Internal("Outfeed ", feed_id_, " has an element of unknown shape"));
      } else {
        shape = taken[0].front()[i].shape();
      }
      OP_REQUIRES_OK(context, Stack(context, i, axes, shape, [&](size_t index) {
        return &taken[index % replicas][index / replicas][i];
      }));
    }
  }

 private:
  // Elements that programs sent must have the op's declared dtypes and shapes.
  Status CheckTypes(OpKernelContext* context, const Element& element) const {
    DataTypeVector types;
    for (const Tensor& tensor : element) types.push_back(tensor.dtype());
    if (types == output_types()) return OkStatus();
    return errors::InvalidArgument("Outfeed ", feed_id_, " is dequeued as ", DataTypeSliceString(output_types()),
                                   ", and programs have sent ", DataTypeSliceString(types),
                                   " to it. An outfeed's elements are all of the same types: dequeue those of one "
                                   "program before another is traced, or give each an IPUOutfeedQueue of its own.");
  }

  // Elements of a program that was compiled and not run.
  Status OutputZeros(OpKernelContext* context, std::vector<int64_t> axes, int32_t replicas) const {
    if (replicas > 1) axes.push_back(replicas);
    for (int i = 0; i < context->num_outputs(); ++i) {
      TensorShape element, whole(axes);
      if (!shapes_[i].AsTensorShape(&element)) {
        return errors::Unimplemented("Element ", i, " of outfeed ", feed_id_, " has no fully defined shape, so that ",
                                     "under DeviceConnectionType.PRE_COMPILE no zeros can be given for it. Enqueue ",
                                     "tensors of static shapes.");
      }
      TF_RETURN_IF_ERROR(whole.AppendShapeWithStatus(element));
      Tensor* output = nullptr;
      TF_RETURN_IF_ERROR(context->allocate_output(i, whole, &output));
      if (output->TotalBytes() > 0) std::memset(output->data(), 0, output->TotalBytes());
    }
    return OkStatus();
  }

  // An output of elements under further axes, given by their number in row-major order.
  template <typename ElementAt>
  static Status Stack(OpKernelContext* context, int output, const std::vector<int64_t>& axes, const TensorShape& shape,
                      const ElementAt& element_at) {
    int64_t count = 1;
    TensorShape whole, flat = shape;
    for (const int64_t axis : axes) {
      count *= axis;
      TF_RETURN_IF_ERROR(whole.AddDimWithStatus(axis));
    }
    for (int axis = 0; axis < shape.dims(); ++axis) TF_RETURN_IF_ERROR(whole.AddDimWithStatus(shape.dim_size(axis)));
    TF_RETURN_IF_ERROR(flat.InsertDimWithStatus(0, count));
    Tensor* stacked = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(output, whole, &stacked));
    Tensor rows;
    if (!rows.CopyFrom(*stacked, flat)) return errors::Internal("An outfeed cannot be stacked");
    for (int64_t index = 0; index < count; ++index) {
      TF_RETURN_IF_ERROR(batch_util::CopyElementToSlice(*element_at(index), &rows, index));
    }
    return OkStatus();
  }

  string feed_id_;
  std::vector<PartialTensorShape> shapes_;
  int64_t device_ordinal_ = 0;
  bool only_last_ = false, wait_for_completion_ = false, is_synthetic_ = false;
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
