// Pooling of regions of interest by bilinear interpolation.
#ifndef popnn_ROIAlign_hpp
#define popnn_ROIAlign_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popnn::experimental {

// Each output bin is the mean of samplingRatio^2 samples; 0 takes as many as a bin has pixels, rounded up. With `aligned`
// coordinates are half a pixel less, otherwise regions have at least one pixel.
struct roiAlignParams {
  long unsigned int samplingRatio_, alignedHeight_, alignedWidth_;
  bool aligned_;
  float spatialScale_;
  roiAlignParams(long unsigned int samplingRatio, long unsigned int poolH, long unsigned int poolW, bool aligned,
                 float spatialScale)
      : samplingRatio_{samplingRatio}, alignedHeight_{poolH}, alignedWidth_{poolW}, aligned_{aligned},
        spatialScale_{spatialScale} {}
};

// {regions, channels, alignedHeight, alignedWidth} of bottomData {batch, channels, height, width}, for regions
// {number, 4} of x1, y1, x2, y2, and the image of each.
poplar::Tensor roiAlignFwd(poplar::Graph &graph, poplar::program::Sequence &prog, poplar::Tensor &bottomData,
                           poplar::Tensor &bottomRois, poplar::Tensor &bottomBatchIndex, const roiAlignParams &params,
                           const poplar::DebugContext &debugContext = {});

// The gradient of bottomData.
poplar::Tensor roiAlignInputGradient(poplar::Graph &graph, poplar::program::Sequence &prog, poplar::Tensor &bottomData,
                                     poplar::Tensor &bottomRois, poplar::Tensor &bottomBatchIndex,
                                     poplar::Tensor &topDataGrad, const roiAlignParams &params,
                                     const poplar::DebugContext &debugContext = {});

}  // namespace popnn::experimental

#endif
