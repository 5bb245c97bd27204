// The C functions by which TensorFlow's op, and Python, build and run a user's op. Each returns a status code of
// TensorFlow, 0 for success. For any other code `*error` is a message. Free all strings with `tf_ipu_poplar_free`.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_BRIDGE_H_
#define TF_IPU_SHIM_POPLAR_BRIDGE_BRIDGE_H_

#include <cstddef>

#define TF_IPU_POPLAR_EXPORT __attribute__((visibility("default")))

extern "C" {

// Loads the library of a call (`op_call.hpp`) and returns its metadata as JSON.
TF_IPU_POPLAR_EXPORT int tf_ipu_poplar_metadata(const char* call, std::size_t size, char** json, char** error);

// Builds the op of a call, or finds the one that was built for the same call. `*op` has a share of it until it is
// released; the op itself is kept until it is forgotten, too.
TF_IPU_POPLAR_EXPORT int tf_ipu_poplar_build(const char* call, std::size_t size, void** op, char** error);

TF_IPU_POPLAR_EXPORT void tf_ipu_poplar_release(void* op);

// Tells a built op its name and line in the script, for messages of its runs.
TF_IPU_POPLAR_EXPORT int tf_ipu_poplar_locate(const char* call, std::size_t size, const char* op, char** error);

// Forgets the op of a call, or all ops that were built for a target.
TF_IPU_POPLAR_EXPORT void tf_ipu_poplar_forget(const char* call, std::size_t size);
TF_IPU_POPLAR_EXPORT void tf_ipu_poplar_forget_target(const char* target);

// Returns how many ops are kept.
TF_IPU_POPLAR_EXPORT std::size_t tf_ipu_poplar_count();

// Returns JSON: the tiles of inputs and outputs, what else is on the tiles, compute sets and exchanges.
TF_IPU_POPLAR_EXPORT int tf_ipu_poplar_describe(void* op, char** json, char** error);

// Runs an op on row-major arrays. Several threads may run one op at a time; each run has its own memory.
TF_IPU_POPLAR_EXPORT int tf_ipu_poplar_run(void* op, const void* const* inputs, void* const* outputs, char** error);

TF_IPU_POPLAR_EXPORT void tf_ipu_poplar_free(char* text);

}  // extern "C"

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_BRIDGE_H_
