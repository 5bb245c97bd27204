// Names and debug information of graph elements.
#ifndef poplar_DebugContext_hpp
#define poplar_DebugContext_hpp

#include <poplar/ProfileValue.hpp>
#include <poplar/StringRef.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace poplar {

using DebugId = std::uint64_t;

class DebugInfo;
class DebugContext;
class DebugNameAndId;

class SourceLocation {
 public:
  SourceLocation() = default;
  SourceLocation(StringRef function, StringRef file, unsigned line) : function_(function), file_(file), line_(line) {}
  const std::string& getFunctionName() const { return function_; }
  const std::string& getFileName() const { return file_; }
  unsigned getLineNumber() const { return line_; }
  bool isValid() const { return !file_.empty(); }
  static SourceLocation Current(const char* function = __builtin_FUNCTION(), const char* file = __builtin_FILE(),
                                unsigned line = __builtin_LINE()) {
    return {function, file, line};
  }

 private:
  std::string function_, file_;
  unsigned line_ = 0;
};

class DebugNameAndId {
 public:
  DebugNameAndId(std::string name = "", DebugId debugId = {}, std::string parentPath = "")
      : name_(std::move(name)), parent_(std::move(parentPath)), id_(debugId) {}
  DebugNameAndId(const char* name) : name_(name) {}
  DebugNameAndId(DebugId debugId, std::string parentPath = "") : parent_(std::move(parentPath)), id_(debugId) {}
  DebugNameAndId(const DebugInfo& info, std::string name = "");
  DebugNameAndId(const DebugNameAndId& parent, StringRef name)
      : name_(name.str()), parent_(parent.getPathName()), id_(parent.id_) {}

  std::string getPathName() const { return parent_.empty() ? name_ : name_.empty() ? parent_ : parent_ + "/" + name_; }
  std::string getName() const { return name_; }
  std::string getParentPath() const { return parent_; }
  DebugId getDebugId() const { return id_; }

 private:
  std::string name_, parent_;
  DebugId id_ = 0;
};

class DebugContext {
 public:
  DebugContext(SourceLocation location = SourceLocation::Current()) : location_(std::move(location)) {}
  DebugContext(const char* name, SourceLocation location = SourceLocation::Current())
      : name_(name), location_(std::move(location)) {}
  DebugContext(StringRef name, SourceLocation location = SourceLocation::Current())
      : name_(name.str()), location_(std::move(location)) {}
  DebugContext(std::string name, SourceLocation location = SourceLocation::Current())
      : name_(std::move(name)), location_(std::move(location)) {}
  DebugContext(const DebugInfo& info, std::string name = "", SourceLocation location = SourceLocation::Current())
      : name_(DebugNameAndId(info), name), location_(std::move(location)) {}
  DebugContext(const DebugNameAndId& parent, std::string name = "",
               SourceLocation location = SourceLocation::Current())
      : name_(parent, name), location_(std::move(location)) {}
  // Only for a DebugContext itself: for {std::string, "name"} the parent is a DebugNameAndId.
  template <class Parent, std::enable_if_t<std::is_same_v<Parent, DebugContext>, int> = 0>
  DebugContext(const Parent& parent, StringRef name)
      : name_(parent.name_, name), location_(parent.location_) {}

  std::string getPathName() const { return name_.getPathName(); }
  const DebugNameAndId& getNameAndId() const { return name_; }
  const SourceLocation& getLocation() const { return location_; }

 private:
  DebugNameAndId name_;
  SourceLocation location_;
};

class DebugInfo {
 public:
  DebugInfo(const DebugContext& context, std::string layer);
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;
  virtual ~DebugInfo();

  DebugId getId() const { return id_; }
  std::string getPathName() const { return path_; }
  bool setValue(std::string name, const ProfileValue& value);
  bool setValue(std::string name, const std::string& value) { return setValue(std::move(name), ProfileValue(value)); }
  bool setValue(std::string name, StringRef value) { return setValue(std::move(name), ProfileValue(value)); }
  bool setValue(std::string name, const char* value) { return setValue(std::move(name), ProfileValue(value)); }
  const ProfileValue::Map& getValues() const { return values_; }

 private:
  DebugId id_;
  std::string path_;
  ProfileValue::Map values_;
};

inline DebugNameAndId::DebugNameAndId(const DebugInfo& info, std::string name)
    : name_(std::move(name)), parent_(info.getPathName()), id_(info.getId()) {}

}  // namespace poplar

#endif
