// The kinds of files that codelets are loaded from, such as C++ source and object files.
#ifndef poplar_CodeletFileType_hpp
#define poplar_CodeletFileType_hpp

namespace poplar {

enum class CodeletFileType { PreprocessedAsmSource, AsmSource, CSource, CppSource, IrSource, Object, Auto };

}  // namespace poplar

#endif
