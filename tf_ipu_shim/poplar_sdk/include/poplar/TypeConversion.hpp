// Conversions of host data to and from a device type.
#ifndef poplar_TypeConversion_hpp
#define poplar_TypeConversion_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/Target.hpp>
#include <poplar/Type.hpp>
#include <poplar/TypeTraits.hpp>

namespace poplar {

namespace detail {
void convertToHost(const void* from, Type type, void* to, const TypeTraits& traits, std::size_t count);
}

template <class T, IfSimple<T> = 0>
void convertToDeviceType(const Type& type, ArrayRef<T> source, void* destination) {
  detail::convertElements(source.data(), TypeTraits::make<T>(), destination, type, source.size());
}
template <class T, IfSimple<T> = 0>
void convertFromDeviceType(const Type& type, const void* source, T* destination, std::size_t count) {
  detail::convertToHost(source, type, destination, TypeTraits::make<T>(), count);
}

}  // namespace poplar

#endif
