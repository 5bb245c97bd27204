// By this symbol a compiled library says which Poplar headers it was compiled with (csrc/bridge/user_library.cc). The
// number rises when a change of a header makes libraries crash that were compiled before.
#ifndef poplar_detail_headers_hpp
#define poplar_detail_headers_hpp

extern "C" {
__attribute__((weak, used, visibility("default"))) int tf_ipu_shim_poplar_headers = 1;
}

#endif
