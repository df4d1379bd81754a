// How one call is to run, and on what type of elements. Part of ddl.hpp.
#ifndef DDL_CALL_HPP
#define DDL_CALL_HPP

#include <cstdint>
#include <type_traits>
#include <utility>

#include "ddl/ddl.h"
#include "ddl/half.hpp"

namespace ddl {

enum class Op : ddl_op {
  sum = DDL_SUM,
  average = DDL_AVERAGE,
  min = DDL_MIN,
  max = DDL_MAX,
  product = DDL_PRODUCT,
  bit_and = DDL_BIT_AND,
  bit_or = DDL_BIT_OR,
  bit_xor = DDL_BIT_XOR,
  logical_and = DDL_LOGICAL_AND,
  logical_or = DDL_LOGICAL_OR,
  logical_xor = DDL_LOGICAL_XOR
};

/// How one collective is to run; see ddl_call_options.
struct CallOptions {
  std::uint64_t process_set = DDL_WORLD;
  double timeout_seconds = 0.0;
  void* stream = nullptr;
  double prescale = 1.0;
  double postscale = 1.0;
};

namespace detail {

template <class T>
struct FitsInto64Bits : std::bool_constant<sizeof(T) <= 8> {};

/// The types that libddl moves and combines.
template <class T>
inline constexpr bool is_element =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, float16> ||
    std::is_same_v<T, ddl_float16> || std::is_same_v<T, bfloat16> || std::is_same_v<T, ddl_bfloat16> ||
    std::conjunction_v<std::is_integral<T>, FitsInto64Bits<T>>;

template <class T>
constexpr ddl_dtype dtype_of() {
  static_assert(is_element<T>,
                "this is no element type of libddl, which has float, double, ddl::float16, ddl::bfloat16, "
                "bool and integers of 8 to 64 bits");
  if constexpr (std::is_same_v<T, float>) {
    return DDL_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DDL_FLOAT64;
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, ddl_float16>) {
    return DDL_FLOAT16;
  } else if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, ddl_bfloat16>) {
    return DDL_BFLOAT16;
  } else if constexpr (std::is_same_v<T, bool>) {
    static_assert(sizeof(bool) == 1, "libddl's bool is a byte");
    return DDL_BOOL;
  } else {
    constexpr ddl_dtype kSigned[] = {DDL_INT8, DDL_INT16, DDL_INT32, DDL_INT64};
    constexpr ddl_dtype kUnsigned[] = {DDL_UINT8, DDL_UINT16, DDL_UINT32, DDL_UINT64};
    constexpr int kIndex = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kIndex] : kUnsigned[kIndex];
  }
}

/// Elements that a call writes. The assertion stands in a class so that it is the compiler's first error.
template <class T>
struct Written {
  static_assert(!std::is_const_v<T>, "libddl writes to these elements, but they are const");
  static constexpr bool value = true;
};

/// What data() of a container returns; void if it has none.
template <class Container, class = void>
struct DataTrait {
  using type = void;
};
template <class Container>
struct DataTrait<Container, std::void_t<decltype(std::declval<Container&>().data())>> {
  using type = decltype(std::declval<Container&>().data());
};
template <class Container>
using DataOf = typename DataTrait<Container>::type;
/// Its elements' type, without const.
template <class Container>
using ElementOf = std::remove_const_t<std::remove_pointer_t<DataOf<Container>>>;
/// A type that has a size() is taken for a container.
template <class Container>
using SizeOf = decltype(std::declval<Container&>().size());

/// The elements of a container that a call reads.
template <class Container>
const ElementOf<const Container>* data_to_read(const Container& values) {
  static_assert(is_element<ElementOf<const Container>>,
                "libddl cannot read this container: data() is no pointer to elements of one of its types "
                "(std::vector<bool> has none; std::vector<char> will do)");
  return values.data();
}

/// The elements of a container that a call writes. Container: as a forwarding reference deduces it.
template <class Container>
ElementOf<Container>* data_to_write(std::remove_reference_t<Container>& values) {
  static_assert(is_element<ElementOf<Container>>,
                "libddl cannot use this container: data() is no pointer to elements of one of its types "
                "(std::vector<bool> has none; std::vector<char> will do)");
  static_assert(!std::is_const_v<std::remove_pointer_t<DataOf<Container>>>,
                "libddl writes to the elements of this container, but they are const");
  if constexpr (!std::is_reference_v<Container>) {
    // A view does not own its elements, so they can be written through a const view too.
    static_assert(!std::is_const_v<std::remove_pointer_t<DataOf<const Container>>>,
                  "the result would vanish with this temporary container: give it a name");
  }
  return values.data();
}

inline ddl_call_options to_c(const CallOptions& options) {
  ddl_call_options c = DDL_CALL_OPTIONS_INIT;
  c.process_set = options.process_set;
  c.timeout_seconds = options.timeout_seconds;
  c.stream = options.stream;
  c.prescale = options.prescale;
  c.postscale = options.postscale;
  return c;
}

}  // namespace detail

}  // namespace ddl

#endif  // DDL_CALL_HPP
