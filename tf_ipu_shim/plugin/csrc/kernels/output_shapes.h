// Sets an op's output shapes from its attribute `output_shapes`, as the op's shape function.
#ifndef TF_IPU_SHIM_OUTPUT_SHAPES_H_
#define TF_IPU_SHIM_OUTPUT_SHAPES_H_

#include <vector>

#include "tensorflow/core/framework/shape_inference.h"

namespace tf_ipu_shim {

// Sets the output shapes from the attribute `output_shapes`; outputs without an entry stay unknown.
inline tensorflow::Status SetOutputShapesFromAttribute(tensorflow::shape_inference::InferenceContext* context) {
  std::vector<tensorflow::PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(context->GetAttr("output_shapes", &shapes));
  for (int i = 0; i < context->num_outputs() && i < static_cast<int>(shapes.size()); ++i) {
    tensorflow::shape_inference::ShapeHandle shape;
    TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    context->set_output(i, shape);
  }
  return tensorflow::OkStatus();
}

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_OUTPUT_SHAPES_H_
