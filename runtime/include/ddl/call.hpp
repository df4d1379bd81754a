// How one call is to run, and on what type of elements. Part of ddl.hpp.
#ifndef DDL_CALL_HPP
#define DDL_CALL_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "ddl/error.hpp"
#include "ddl/float8.hpp"
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
  logical_xor = DDL_LOGICAL_XOR,
  adasum = DDL_ADASUM
};

/// How one collective is to run; see ddl_call_options.
struct CallOptions {
  std::uint64_t process_set = DDL_WORLD;
  double timeout_seconds = 0.0;
  void* stream = nullptr;
  double prescale = 1.0;
  double postscale = 1.0;
};

/// How a named tensor is to be executed; see ddl_async_options.
struct AsyncOptions {
  std::uint64_t process_set = DDL_WORLD;
  void* stream = nullptr;
  double prescale = 1.0;
  double postscale = 1.0;
  std::int32_t priority = 0;
  std::string group;             ///< empty: none
  std::uint32_t group_size = 0;  ///< 0 = the number of tensors of the call
  std::vector<std::uint64_t> shape;
  bool zeros_if_joined = false;
  bool fails_if_joined = false;
};

namespace detail {

template <class T>
struct FitsInto64Bits : std::bool_constant<sizeof(T) <= 8> {};

template <class T>
inline constexpr bool is_float8 = std::is_same_v<T, float8_e4m3fn> || std::is_same_v<T, float8_e5m2> ||
                                  std::is_same_v<T, float8_e4m3fnuz> || std::is_same_v<T, float8_e5m2fnuz>;

/// The types that libddl moves and combines.
template <class T>
inline constexpr bool is_element =
    is_float8<T> || std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, float16> ||
    std::is_same_v<T, ddl_float16> || std::is_same_v<T, bfloat16> || std::is_same_v<T, ddl_bfloat16> ||
    std::conjunction_v<std::is_integral<T>, FitsInto64Bits<T>>;

template <class T>
constexpr ddl_dtype dtype_of() {
  static_assert(is_element<T>,
                "this is no element type of libddl, which has float, double, ddl::float16, ddl::bfloat16, "
                "ddl::float8_e4m3fn and its kin, bool and integers of 8 to 64 bits");
  if constexpr (std::is_same_v<T, float>) {
    return DDL_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DDL_FLOAT64;
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, ddl_float16>) {
    return DDL_FLOAT16;
  } else if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, ddl_bfloat16>) {
    return DDL_BFLOAT16;
  } else if constexpr (is_float8<T>) {
    if constexpr (std::is_same_v<T, float8_e4m3fn>) return DDL_FLOAT8_E4M3FN;
    if constexpr (std::is_same_v<T, float8_e5m2>) return DDL_FLOAT8_E5M2;
    return std::is_same_v<T, float8_e4m3fnuz> ? DDL_FLOAT8_E4M3FNUZ : DDL_FLOAT8_E5M2FNUZ;
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

/// A container whose elements a call reads after it has returned. Container: as a forwarding reference deduces it. The
/// assertions stand in a class so that they are the compiler's first errors.
template <class Container>
struct ReadLater {
  using Read = const std::remove_reference_t<Container>;
  static_assert(is_element<ElementOf<Read>>,
                "libddl cannot read this container: data() is no pointer to elements of one of its types "
                "(std::vector<bool> has none; std::vector<char> will do)");
  // A view does not own its elements, so their type does not depend on whether the view is const.
  static_assert(std::is_reference_v<Container> ||
                    std::is_same_v<DataOf<std::remove_const_t<Container>>, DataOf<Read>>,
                "libddl reads the elements of this temporary container later: give it a name");
  static const ElementOf<Read>* data(Read& values) { return values.data(); }
};

/// Some containers have a signed size().
template <class Container>
std::size_t count_of(const Container& values) {
  return static_cast<std::size_t>(values.size());
}

/// The vector that a call returns.
template <class T>
struct Returned {
  static_assert(!std::is_same_v<T, bool>,
                "libddl cannot write to a std::vector<bool>: call the function that takes pointers");
  static std::vector<T> of(std::size_t count) { return std::vector<T>(count); }
};

inline std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  return sum;
}

/// The number of ranks of a process set; 0 if this rank is not a member.
inline std::size_t ranks_of(const ddl_context* context, std::uint64_t process_set) {
  const std::int32_t size = ddl_process_set_size(context, process_set);
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

/// This rank's entry of counts. sentence: what to say if counts does not have an entry per rank.
inline std::size_t own_count(const char* sentence, const std::vector<std::uint64_t>& counts,
                             const ddl_context* context, std::uint64_t process_set) {
  const std::int32_t rank = ddl_process_set_rank(context, process_set);
  require(rank >= 0, "this rank is not a member of the process set");
  require(counts.size() == ranks_of(context, process_set), sentence);
  return static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
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

/// Its group and shape are those of options, which must live as long. tensors: how many the call submits.
inline ddl_async_options to_c(const AsyncOptions& options, std::size_t tensors = 1) {
  ddl_async_options c = DDL_ASYNC_OPTIONS_INIT;
  c.process_set = options.process_set;
  c.stream = options.stream;
  c.prescale = options.prescale;
  c.postscale = options.postscale;
  c.priority = options.priority;
  if (!options.group.empty()) {
    c.group = options.group.c_str();
    c.group_size = options.group_size != 0 ? options.group_size : static_cast<std::uint32_t>(tensors);
  }
  c.shape = options.shape.data();
  c.dimensions = options.shape.size();
  c.zeros_if_joined = options.zeros_if_joined ? 1 : 0;
  c.fails_if_joined = options.fails_if_joined ? 1 : 0;
  return c;
}

}  // namespace detail

}  // namespace ddl

#endif  // DDL_CALL_HPP
