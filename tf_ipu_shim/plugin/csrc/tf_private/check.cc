// Compares the declarations of `tf_private` with the TensorFlow that the plugin was built for. It compares sizes of
// objects and virtual tables, names of types, and results of functions whose arguments have a private layout.
// `check_main.cc` calls it when the plugin is built, in a separate process, which a wrong layout may end.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/xla_kernels.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/public/version.h"
#include "tf_private/compilation_announced.h"
#include "tf_private/compiler_ir.h"
#include "tf_private/dataset_variant.h"
#include "tf_private/function_bodies.h"
#include "tf_private/xla_launch.h"

extern "C" const char* ipu_compiler_ir(void* context, const char* library, int64_t size, const char* function,
                                       const int64_t* arguments, int64_t count, int64_t* form_size, int32_t* fails);

namespace tf_ipu_shim {
namespace private_symbols {
namespace {

namespace tf = tensorflow;

// How many bytes were asked for at an address; 0 where none were.
using SizeOf = size_t (*)(const void*);

constexpr int kNoSuchSymbol = -1;

int64_t SymbolSize(const char* name) {
  void* const address = dlsym(RTLD_DEFAULT, name);
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (address == nullptr) return kNoSuchSymbol;
  if (dladdr1(address, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) == 0) {
    return kNoSuchSymbol;
  }
  return symbol == nullptr ? kNoSuchSymbol : static_cast<int64_t>(symbol->st_size);
}

std::string Differs(const std::string& what, int64_t found, const std::string& expected) {
  return what + " is " + std::to_string(found) + "; expected " + expected + ".";
}

// TensorFlow's own kernel only has the members of its base class.
std::string CheckLaunchSize(SizeOf size_of) {
  tf::NodeDef node;
  node.set_name("launch");
  node.set_op("XlaLaunch");
  tf::NameAttrList function;
  function.set_name("function");
  tf::AddNodeAttr("function", function, &node);
  tf::AddNodeAttr("Nresources", 0, &node);
  for (const char* types : {"Tconstants", "Targs", "Tresults"}) tf::AddNodeAttr(types, tf::DataTypeVector(), &node);
  const auto device = tf::DeviceFactory::NewDevice("CPU", tf::SessionOptions(), "/job:localhost/replica:0/task:0");
  tf::Status status;
  const auto kernel =
      tf::CreateOpKernel(tf::DeviceType("CPU"), device.get(), device->GetAllocator(tf::AllocatorAttributes()), node,
                         TF_GRAPH_DEF_VERSION, &status);
  if (!status.ok()) return "a kernel of XlaLaunch cannot be made: " + std::string(status.message());
  const auto found = static_cast<int64_t>(size_of(kernel.get()));
  constexpr int64_t kReserved = sizeof(tf::XlaLocalLaunchBase);
  if (found > static_cast<int64_t>(sizeof(tf::AsyncOpKernel)) && found <= kReserved) return "";
  return Differs("the size of XlaLocalLaunchBase (xla_launch.h)", found,
                 "more than " + std::to_string(sizeof(tf::AsyncOpKernel)) + " and up to " + std::to_string(kReserved));
}

std::string CheckLaunchTable() {
  const int64_t own = SymbolSize("_ZTVN10tensorflow18XlaLocalLaunchBaseE");
  const int64_t base = SymbolSize("_ZTVN10tensorflow13AsyncOpKernelE");
  if (own == base && own > 0) return "";
  return Differs("the size of XlaLocalLaunchBase's table of virtual functions (xla_launch.h)", own,
                 std::to_string(base) + ", as AsyncOpKernel's");
}

std::string CheckAnnounced() {
  const int64_t found = SymbolSize(TF_IPU_SHIM_COMPILATION_ANNOUNCED);
  if (found == kNoSuchSymbol || found == static_cast<int64_t>(sizeof(absl::once_flag))) return "";
  return Differs("the size of compilation_announced (compilation_announced.h)", found,
                 std::to_string(sizeof(absl::once_flag)));
}

std::string CheckDatasetVariant() {
  tf::Tensor dataset(tf::DT_VARIANT, tf::TensorShape());
  const tf::Status status = tf::data::StoreDatasetInVariantTensor(nullptr, &dataset);
  if (!status.ok()) return "no dataset can be stored in a variant: " + std::string(status.message());
  const tf::Variant& variant = dataset.scalar<tf::Variant>()();
  if (variant.TypeId() == tf::TypeIndex::Make<tf::data::DatasetVariantWrapper>()) return "";
  return "the type of a dataset's variant (dataset_variant.h) is " + std::string(variant.TypeId().name()) +
         "; expected DatasetVariantWrapper.";
}

std::string CheckXlaOpRegistry() {
  tf::NodeDef node;
  node.set_name("add");
  node.set_op("AddV2");
  tf::AddNodeAttr("T", tf::DT_FLOAT, &node);
  return XlaHasKernel(node) ? "" : "XLA's kernel of AddV2 (xla_op_registry.h) is not registered; expected one.";
}

// reshape(x, sizes): `sizes` must be known when XLA compiles it.
tf::FunctionDef Reshape() {
  return tf::FunctionDefHelper::Define("ipu_check_reshape", {"x: float", "sizes: int32"}, {"y: float"}, {},
                                       {{{"y"}, "Reshape", {"x", "sizes"}, {{"T", tf::DT_FLOAT}, {"Tshape", tf::DT_INT32}}}});
}

tf::FunctionDef Second() {
  return tf::FunctionDefHelper::Define("ipu_check_second", {"x: float", "y: float"}, {"z: float"}, {},
                                       {{{"z"}, "Neg", {"y"}, {{"T", tf::DT_FLOAT}}}});
}

std::string CheckFunctionBodies(tf::EagerContext* context) {
  tf::Status status = context->AddFunctionDef(Reshape());
  if (!status.ok()) return "no function can be added: " + std::string(status.message());
  tf::NameAttrList name;
  name.set_name("ipu_check_reshape");
  const tf::FunctionBody* body = nullptr;
  std::vector<int> constants, resources;
  status = tf::GetBodyAndConstantsAndResources(context->func_lib(context->HostCPU()), name, &body, &constants, &resources);
  if (!status.ok()) return "GetBodyAndConstantsAndResources (function_bodies.h) fails: " + std::string(status.message());
  if (constants == std::vector<int>{1} && resources.empty() && body != nullptr) return "";
  return Differs("the number of constants that GetBodyAndConstantsAndResources (function_bodies.h) finds in a reshape",
                 static_cast<int64_t>(constants.size()), "1, its second argument");
}

// The shape of each argument is at its position in an array, whose stride is the size of `ArgShapeAndDType`.
std::string CheckCompilerIr(TFE_Context* context) {
  tf::FunctionDefLibrary library;
  *library.add_function() = Second();
  const std::string bytes = library.SerializeAsString();
  const std::vector<int64_t> arguments = {tf::DT_FLOAT, 0, 1, 3, tf::DT_FLOAT, 0, 1, 12345};
  int64_t size = 0;
  int32_t fails = 0;
  const char* const form = ipu_compiler_ir(context, bytes.data(), static_cast<int64_t>(bytes.size()), "ipu_check_second",
                                           arguments.data(), static_cast<int64_t>(arguments.size()), &size, &fails);
  const std::string text(form, size);
  if (fails != 0) return "GetCompilerIr (compiler_ir.h) fails: " + text;
  const std::string dimension("\xb9\x60", 2);  // 12345 as a varint of protobuf
  if (text.find(dimension) != std::string::npos && text.rfind("HloModule ", 0) != 0) return "";
  return "the form that GetCompilerIr (compiler_ir.h) gives is without the second argument's shape; expected its HLO.";
}

std::string CheckWithContext() {
  const std::unique_ptr<TF_Status, void (*)(TF_Status*)> status(TF_NewStatus(), TF_DeleteStatus);
  const std::unique_ptr<TFE_ContextOptions, void (*)(TFE_ContextOptions*)> options(TFE_NewContextOptions(),
                                                                                  TFE_DeleteContextOptions);
  const std::unique_ptr<TFE_Context, void (*)(TFE_Context*)> context(TFE_NewContext(options.get(), status.get()),
                                                                     TFE_DeleteContext);
  if (TF_GetCode(status.get()) != TF_OK) return "no eager context can be made: " + std::string(TF_Message(status.get()));
  const std::string problem = CheckFunctionBodies(tf::ContextFromInterface(tf::unwrap(context.get())));
  return problem.empty() ? CheckCompilerIr(context.get()) : problem;
}

std::string Check(SizeOf size_of) {
  std::string problem = CheckLaunchSize(size_of);
  if (problem.empty()) problem = CheckLaunchTable();
  if (problem.empty()) problem = CheckAnnounced();
  if (problem.empty()) problem = CheckDatasetVariant();
  if (problem.empty()) problem = CheckXlaOpRegistry();
  if (problem.empty()) problem = CheckWithContext();
  return problem;
}

}  // namespace
}  // namespace private_symbols
}  // namespace tf_ipu_shim

// Returns a description of the first difference between TensorFlow and its declaration here, or null.
extern "C" const char* ipu_check_tensorflow(size_t (*size_of)(const void*)) {
  static std::string problem;
  problem = tf_ipu_shim::private_symbols::Check(size_of);
  return problem.empty() ? nullptr : problem.c_str();
}
