// The fields that connect a vertex to tensors.
#ifndef POPLAR_IN_OUT_TYPES_HPP
#define POPLAR_IN_OUT_TYPES_HPP

#include <poplar/FieldTypes.hpp>
#include <poplar/VectorListTypes.hpp>
#include <poplar/detail/elements.hpp>

#define NO_INSTRUMENT

namespace poplar {

// A vector of the vertex's own values, or, of Input, Output or InOut, one of connections.
template <typename T, VectorLayout L = VectorLayout::SPAN, unsigned MinAlign = alignof(T), bool Interleaved = false>
class Vector : public detail::Elements<T, detail::hasSize(L)> {};

// One element. To assign to an output is to assign to its element.
template <typename T>
class Input {
 public:
  operator const T&() const { return *first_; }
  const T& operator*() const { return *first_; }
  const T* operator->() const { return first_; }
  void bindElement(const T* first) { first_ = first; }

 private:
  const T* first_;
};

template <typename T>
class Output {
 public:
  Output() = default;
  Output(const Output&) = default;
  const Output& operator=(const Output& other) const { return *this = *other.first_; }
  const Output& operator=(const T& value) const {
    *first_ = value;
    return *this;
  }
  operator T&() const { return *first_; }
  T& operator*() const { return *first_; }
  T* operator->() const { return first_; }
  void bindElement(T* first) { first_ = first; }

 private:
  T* first_;
};

template <typename T>
class InOut {
 public:
  InOut() = default;
  InOut(const InOut&) = default;
  const InOut& operator=(const InOut& other) const { return *this = *other.first_; }
  const InOut& operator=(const T& value) const {
    *first_ = value;
    return *this;
  }
  operator T&() const { return *first_; }
  T& operator*() const { return *first_; }
  T* operator->() const { return first_; }
  void bindElement(T* first) { first_ = first; }

 private:
  T* first_;
};

// A vector of elements.
template <typename T, VectorLayout L, unsigned MinAlign, bool Interleaved>
class Input<Vector<T, L, MinAlign, Interleaved>> : public detail::Elements<const T, detail::hasSize(L)> {
 public:
  using Base = detail::Elements<const T, detail::hasSize(L)>;
  // Codelets of early releases cast the address of an element to a pointer to short vectors that are not constant.
  T& operator[](std::size_t index) { return const_cast<T&>(Base::operator[](index)); }
  const T& operator[](std::size_t index) const { return Base::operator[](index); }
};

template <typename T, VectorLayout L, unsigned MinAlign, bool Interleaved>
class Output<Vector<T, L, MinAlign, Interleaved>> : public detail::Elements<T, detail::hasSize(L)> {};

template <typename T, VectorLayout L, unsigned MinAlign, bool Interleaved>
class InOut<Vector<T, L, MinAlign, Interleaved>> : public detail::Elements<T, detail::hasSize(L)> {};

// Vectors of elements.
template <typename T, VectorListLayout L, unsigned MinAlign, bool Interleaved>
class Input<VectorList<T, L, MinAlign, Interleaved>>
    : public detail::Elements<Input<Vector<T, VectorLayout::SPAN, MinAlign, Interleaved>>, true> {};

template <typename T, VectorListLayout L, unsigned MinAlign, bool Interleaved>
class Output<VectorList<T, L, MinAlign, Interleaved>>
    : public detail::Elements<Output<Vector<T, VectorLayout::SPAN, MinAlign, Interleaved>>, true> {};

template <typename T, VectorListLayout L, unsigned MinAlign, bool Interleaved>
class InOut<VectorList<T, L, MinAlign, Interleaved>>
    : public detail::Elements<InOut<Vector<T, VectorLayout::SPAN, MinAlign, Interleaved>>, true> {};

}  // namespace poplar

#endif
