// The symbol that records with which Poplar headers a library was compiled (read by csrc/bridge/user_library.cc). Its
// number rises when a change of a header would make libraries crash that were compiled before.
#ifndef poplar_detail_headers_hpp
#define poplar_detail_headers_hpp

extern "C" {
__attribute__((weak, used, visibility("default"))) int tf_ipu_shim_poplar_headers = 1;
}

#endif
