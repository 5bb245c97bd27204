// Callbacks that fill or read a stream's buffer, and callbacks of host functions.
#ifndef poplar_StreamCallback_hpp
#define poplar_StreamCallback_hpp

#include <poplar/ArrayRef.hpp>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace poplar {

class StreamCallback {
 public:
  enum class Result { Success, NotAvailable };
  virtual ~StreamCallback() = default;
  // May fill the buffer before the device asks for it.
  virtual Result prefetch(void*) { return Result::NotAvailable; }
  // Fills the buffer that the device waits for, or reads the one that it wrote.
  virtual void fetch(void* data) = 0;
  // Called when the device has taken the buffer.
  virtual void complete() {}
  virtual void invalidatePrefetched() {}
};

// A callback that only fetches.
class LegacyStreamCallback : public StreamCallback {
 public:
  Result prefetch(void*) final { return Result::NotAvailable; }
  void complete() final {}
};

namespace detail {

class FunctionCallback final : public LegacyStreamCallback {
 public:
  explicit FunctionCallback(std::function<void(void*)> function) : function_(std::move(function)) {}
  void fetch(void* data) override { function_(data); }

 private:
  std::function<void(void*)> function_;
};

}  // namespace detail

// Owns a callback, made from a function, a callback or a pointer to one.
class StreamCallbackHandle {
  template <class T>
  static constexpr bool is_function = std::is_invocable_v<T, void*> && !std::is_same_v<std::decay_t<T>, StreamCallbackHandle>;

 public:
  template <class T, std::enable_if_t<is_function<T>, int> = 0>
  StreamCallbackHandle(T&& function)
      : callback_(std::make_unique<detail::FunctionCallback>(std::forward<T>(function))) {}
  template <class T, std::enable_if_t<std::is_base_of_v<StreamCallback, T>, int> = 0>
  StreamCallbackHandle(std::unique_ptr<T> callback) : callback_(std::move(callback)) {}

  StreamCallback& operator*() { return *callback_; }
  StreamCallback* operator->() { return callback_.get(); }
  StreamCallback* get() { return callback_.get(); }
  explicit operator bool() const { return callback_ != nullptr; }

 private:
  std::unique_ptr<StreamCallback> callback_;
};

// A host function: it reads the data of its inputs and fills the data of its outputs, both row-major.
class HostCallback {
 public:
  virtual ~HostCallback() = default;
  virtual void operator()(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) = 0;
};

// Owns a callback, made from a function or a pointer to a callback.
class HostCallbackHandle {
  using Function = std::function<void(ArrayRef<const void*>, ArrayRef<void*>)>;
  template <class T>
  static constexpr bool is_function =
      std::is_convertible_v<T, Function> && !std::is_same_v<std::decay_t<T>, HostCallbackHandle>;

 public:
  template <class T, std::enable_if_t<is_function<T>, int> = 0>
  HostCallbackHandle(T&& function) : function_(std::forward<T>(function)) {}
  template <class T, std::enable_if_t<std::is_base_of_v<HostCallback, T>, int> = 0>
  HostCallbackHandle(std::unique_ptr<T> callback)
      : function_([owned = std::shared_ptr<T>(std::move(callback))](ArrayRef<const void*> inputs,
                                                                  ArrayRef<void*> outputs) { (*owned)(inputs, outputs); }) {}

  void operator()(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) const { function_(inputs, outputs); }

 private:
  Function function_;
};

}  // namespace poplar

#endif
