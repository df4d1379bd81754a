// Whether a function that libddl declares by itself is called as the vendor's header says.
#pragma once

#include <type_traits>

namespace ddl::gpu_tests {

/// How a value is passed: a pointer, a number, or an object, and its size.
template <class T>
constexpr int kind_of() {
  if constexpr (std::is_void_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return 1;
  } else if constexpr (std::is_floating_point_v<T>) {
    return 2;
  } else if constexpr (std::is_class_v<T>) {
    return 3 + 16 * static_cast<int>(sizeof(T));
  } else {
    return 4 + 16 * static_cast<int>(sizeof(T));
  }
}

/// Whether a call through one type is a call of the other.
template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... As, class S, class... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct SameCall<R (*)(As...), S (*)(Bs...)>
    : std::bool_constant<kind_of<R>() == kind_of<S>() && ((kind_of<As>() == kind_of<Bs>()) && ...)> {};

// The comparison itself finds what it should.
static_assert(!SameCall<int (*)(void*, unsigned), long unsigned (*)(void*, int)>::value);
static_assert(SameCall<int (*)(char**, unsigned), unsigned (*)(void*, int)>::value);
static_assert(!SameCall<int (*)(unsigned), int (*)(unsigned long)>::value);
static_assert(!SameCall<int (*)(unsigned), int (*)(unsigned, int)>::value);

}  // namespace ddl::gpu_tests

/// A member of libddl's struct Functions against the vendor's function.
#define DDL_SAME_AS(ours, theirs) \
  static_assert(ddl::gpu_tests::SameCall<decltype(ours), decltype(&::theirs)>::value)
/// The same where both have one name.
#define DDL_SAME(namespace_of_ours, name) DDL_SAME_AS(namespace_of_ours::Functions::name, name)
