// Pools regions of interest by bilinear interpolation, and computes the gradient.
#include <popnn/experimental/ROIAlign.hpp>

#include "poputil/library.hpp"

namespace popnn::experimental {

using namespace poputil::library;

namespace {

using poputil::detail::describeShape;
using poputil::detail::typeName;

struct Sizes {
  std::size_t batch, channels, height, width, regions, rows, columns, ratio;
  explicit Sizes(const Shape &s)
      : batch(s[0]), channels(s[1]), height(s[2]), width(s[3]), regions(s[4]), rows(s[5]), columns(s[6]), ratio(s[7]) {}
};

// The samples of one direction of a region: the pixels around each, and how much of the second one it has.
struct Sample {
  std::size_t low, high;
  float part;
  bool inside;
};

std::vector<std::vector<Sample>> samplesOf(float begin, float length, std::size_t bins, std::size_t ratio,
                                           std::size_t pixels) {
  const float bin = length / static_cast<float>(bins);
  // A region may be as large as its coordinates; more samples than pixels of the image do not occur.
  const auto most = static_cast<float>(pixels);
  const auto count = ratio > 0 ? ratio : static_cast<std::size_t>(std::max(1.0f, std::min(std::ceil(bin), most)));
  std::vector<std::vector<Sample>> found(bins);
  for (std::size_t b = 0; b != bins; ++b) {
    for (std::size_t i = 0; i != count; ++i) {
      const float at =
          begin + static_cast<float>(b) * bin + (static_cast<float>(i) + 0.5f) * bin / static_cast<float>(count);
      const bool inside = at >= -1 && at <= static_cast<float>(pixels);
      const float used = inside ? std::max(at, 0.0f) : 0.0f;
      const auto low = std::min(static_cast<std::size_t>(used), pixels - 1);
      const bool last = low + 1 >= pixels;
      found[b].push_back({low, last ? low : low + 1, last ? 0.0f : used - static_cast<float>(low), inside});
    }
  }
  return found;
}

// Calls visit(element of the image, element of the output, weight) for each pair that has a weight.
template <class Visit>
void forEachPair(const Sizes &sizes, const std::vector<float> &regions, const std::int32_t *images, bool aligned,
                 float scale, const Visit &visit) {
  for (std::size_t region = 0; region != sizes.regions; ++region) {
    if (images[region] < 0 || static_cast<std::size_t>(images[region]) >= sizes.batch)
      fail("popnn::roiAlign", "a region is of image " + std::to_string(images[region]) + " of a batch of " +
           std::to_string(sizes.batch), "Pass indices from 0");
    float corners[4];
    for (std::size_t i = 0; i != 4; ++i) corners[i] = regions[4 * region + i] * scale - (aligned ? 0.5f : 0.0f);
    const auto length = [&](float from, float to) { return aligned ? to - from : std::max(to - from, 1.0f); };
    const auto down = samplesOf(corners[1], length(corners[1], corners[3]), sizes.rows, sizes.ratio, sizes.height);
    const auto across = samplesOf(corners[0], length(corners[0], corners[2]), sizes.columns, sizes.ratio, sizes.width);
    for (std::size_t channel = 0; channel != sizes.channels; ++channel) {
      const auto image = (static_cast<std::size_t>(images[region]) * sizes.channels + channel) * sizes.height;
      for (std::size_t row = 0; row != sizes.rows; ++row) {
        for (std::size_t column = 0; column != sizes.columns; ++column) {
          const auto to = ((region * sizes.channels + channel) * sizes.rows + row) * sizes.columns + column;
          const auto share = 1 / static_cast<float>(down[row].size() * across[column].size());
          for (const Sample &y : down[row]) {
            for (const Sample &x : across[column]) {
              if (!y.inside || !x.inside) continue;
              visit((image + y.low) * sizes.width + x.low, to, share * (1 - y.part) * (1 - x.part));
              visit((image + y.low) * sizes.width + x.high, to, share * (1 - y.part) * x.part);
              visit((image + y.high) * sizes.width + x.low, to, share * y.part * (1 - x.part));
              visit((image + y.high) * sizes.width + x.high, to, share * y.part * x.part);
            }
          }
        }
      }
    }
  }
}

void runForward(const KernelArguments &arguments, const poplar::Type &type, const poplar::Type &rois_type,
                const Shape &all, const bool &aligned, const float &scale) {
  const Sizes sizes(all);
  const auto data = poputil::detail::readFloats(type, arguments.inputs[0],
                                                sizes.batch * sizes.channels * sizes.height * sizes.width);
  const auto regions = poputil::detail::readFloats(rois_type, arguments.inputs[1], 4 * sizes.regions);
  std::vector<float> result(sizes.regions * sizes.channels * sizes.rows * sizes.columns);
  forEachPair(sizes, regions, static_cast<const std::int32_t *>(arguments.inputs[2]), aligned, scale,
              [&](std::size_t from, std::size_t to, float weight) { result[to] += weight * data[from]; });
  poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], result.size());
}

void runBackward(const KernelArguments &arguments, const poplar::Type &type, const poplar::Type &rois_type,
                 const Shape &all, const bool &aligned, const float &scale) {
  const Sizes sizes(all);
  const auto gradients = poputil::detail::readFloats(type, arguments.inputs[0],
                                                     sizes.regions * sizes.channels * sizes.rows * sizes.columns);
  const auto regions = poputil::detail::readFloats(rois_type, arguments.inputs[1], 4 * sizes.regions);
  std::vector<float> result(sizes.batch * sizes.channels * sizes.height * sizes.width);
  forEachPair(sizes, regions, static_cast<const std::int32_t *>(arguments.inputs[2]), aligned, scale,
              [&](std::size_t from, std::size_t to, float weight) { result[from] += weight * gradients[to]; });
  poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], result.size());
}

// Sizes of a call whose tensors fit.
Shape sizesOf(const Tensor &data, const Tensor &rois, const Tensor &images, const roiAlignParams &params) {
  const auto describe = [](const char *name, const Tensor &tensor) {
    return std::string(name) + " is " + typeName(tensor.elementType()) + " of the shape " + describeShape(tensor.shape());
  };
  const auto floats = [](const Tensor &tensor) { return poputil::detail::isFloating(tensor.elementType()); };
  if (data.rank() != 4 || !floats(data))
    fail("popnn::roiAlign", describe("bottomData", data), "Pass floats or halves {batch, channels, height, width}");
  if (rois.rank() != 2 || rois.dim(1) != 4 || !floats(rois))
    fail("popnn::roiAlign", describe("bottomRois", rois), "Pass floats or halves {regions, 4}");
  const auto kind = images.elementType();
  if (images.shape() != Shape{rois.dim(0)} || (kind != poplar::INT && kind != poplar::UNSIGNED_INT))
    fail("popnn::roiAlign", describe("bottomBatchIndex", images), "Pass an integer for each region");
  if (params.alignedHeight_ == 0 || params.alignedWidth_ == 0 || data.numElements() == 0)
    fail("popnn::roiAlign", "the output is " + std::to_string(params.alignedHeight_) + " by " +
         std::to_string(params.alignedWidth_) + " for images of the shape " + describeShape(data.shape()),
         "Pass sizes of at least 1");
  auto sizes = data.shape();
  for (const auto size : {rois.dim(0), params.alignedHeight_, params.alignedWidth_, params.samplingRatio_})
    sizes.push_back(size);
  return sizes;
}

}  // namespace

Tensor roiAlignFwd(poplar::Graph &graph, Sequence &prog, Tensor &bottomData, Tensor &bottomRois,
                   Tensor &bottomBatchIndex, const roiAlignParams &params, const poplar::DebugContext &debugContext) {
  const auto sizes = sizesOf(bottomData, bottomRois, bottomBatchIndex, params);
  const auto type = bottomData.elementType();
  const auto result = poputil::detail::createLinear(
      graph, type, {sizes[4], sizes[1], params.alignedHeight_, params.alignedWidth_}, {debugContext, "roiAlign"});
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "roiAlign"}, {bottomData, bottomRois, bottomBatchIndex},
                                  {result},
                                  Kernel::of(runForward, type, bottomRois.elementType(), sizes, params.aligned_,
                                             params.spatialScale_));
  return result;
}

Tensor roiAlignInputGradient(poplar::Graph &graph, Sequence &prog, Tensor &bottomData, Tensor &bottomRois,
                             Tensor &bottomBatchIndex, Tensor &topDataGrad, const roiAlignParams &params,
                             const poplar::DebugContext &debugContext) {
  const auto sizes = sizesOf(bottomData, bottomRois, bottomBatchIndex, params);
  const auto type = bottomData.elementType();
  const Shape expected{sizes[4], sizes[1], params.alignedHeight_, params.alignedWidth_};
  if (topDataGrad.shape() != expected || topDataGrad.elementType() != type)
    fail("popnn::roiAlignInputGradient", "topDataGrad is " + typeName(topDataGrad.elementType()) + " of the shape " +
         describeShape(topDataGrad.shape()) + "; expected " + typeName(type) + " of the shape " +
         describeShape(expected), "Pass the gradient of roiAlignFwd's result");
  const auto result = graph.clone(bottomData, {debugContext, "roiAlignGradient"});
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "roiAlignGradient"},
                                  {topDataGrad, bottomRois, bottomBatchIndex}, {result},
                                  Kernel::of(runBackward, type, bottomRois.elementType(), sizes, params.aligned_,
                                             params.spatialScale_));
  return result;
}

}  // namespace popnn::experimental
