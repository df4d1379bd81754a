// The loops over elements. Included by one file for each instruction set, for which the compiler vectorises them. The
// result of an element is the same for all sets, because elements are independent and nothing is contracted. There
// are few loops on purpose, because each is compiled for every set:
//  - sums and products of signed integers are those of unsigned ones; bitwise operations are those of bytes; bool is
//    a byte whose operations are the logical ones;
//  - combining two inputs into a third array, and one input into an accumulator, are one loop if the types are equal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddl/ddl.h"
#include "runtime/src/collective/kernel/elements.h"
#include "runtime/src/collective/kernel/kernels.h"

namespace ddl::runtime {
namespace {

#ifdef __clang__
#define DDL_INDEPENDENT_ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#else
#define DDL_INDEPENDENT_ELEMENTS _Pragma("GCC ivdep")
#endif

/// Bytes of output that go through all inputs at a time, so that they stay in the L1 cache.
inline constexpr std::size_t kBlockBytes = 4096;

/// How narrow floats are read and written: here one at a time, which compilers vectorise badly or not at all. An
/// instruction set that converts several at once has a class with their number, and with load() and store() of a
/// vector of floats from and to both types and float.
struct OneLane {
  static constexpr std::size_t kLanes = 1;
};

/// Whether a loop over these types uses the set's vectors.
template <class Set, class... Types>
constexpr bool kInLanes = Set::kLanes > 1 && ((kIsSame<Types, Float16> || kIsSame<Types, Bfloat16>) || ...);

/// out = a op b, element by element. out may be a or b: every element is read before it is written.
template <class Set, class Op, class Value, class A, class B, class Out>
inline void combine(const A* a, const B* b, Out* out, std::size_t count) {
  std::size_t e = 0;
  if constexpr (kInLanes<Set, A, B>) {
    for (; e + Set::kLanes <= count; e += Set::kLanes)
      Set::store(out + e, Op::of(Set::load(a + e), Set::load(b + e)));
  }
  DDL_INDEPENDENT_ELEMENTS
  for (std::size_t i = e; i < count; ++i)
    out[i] = Store<Out>::from(Op::of(static_cast<Value>(value_of(a[i])), static_cast<Value>(value_of(b[i]))));
}

/// Set::stream_line() stores a line of 64 bytes, to which its second argument is aligned.
template <class Set>
void stream(const void* from, void* to, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const std::size_t to_line = (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine;
  const std::size_t head = to_line < bytes ? to_line : bytes;
  __builtin_memcpy(target, source, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) Set::stream_line(source + at, target + at);
  __builtin_memcpy(target + at, source + at, bytes - at);
}

template <class T>
inline const T* elements_of(const Inputs& inputs, std::size_t rank) {
  return reinterpret_cast<const T*>(inputs.of_rank[rank]) + inputs.first;
}

// ---- Elements that are combined in their own type.

/// Not inlined: its callers share one copy.
template <class Op, class T>
[[gnu::noinline]] void combine_same(const T* a, const T* b, T* out, std::size_t count) {
  combine<OneLane, Op, T>(a, b, out, count);
}

template <class Op, class T>
void add_same(const void* input, void* partials, std::size_t count) {
  T* values = static_cast<T*>(partials);
  combine_same<Op, T>(values, static_cast<const T*>(input), values, count);
}

template <class Op, class T>
void reduce_same(const Inputs& inputs, void* out, std::size_t count) {
  const T* a = elements_of<T>(inputs, 0);
  T* values = static_cast<T*>(out);
  if (inputs.ranks == 1) return combine_same<typename Alone<Op>::Type, T>(a, a, values, count);
  const T* b = elements_of<T>(inputs, 1);
  if (inputs.ranks == 2) return combine_same<Op, T>(a, b, values, count);
  constexpr std::size_t kBlock = kBlockBytes / sizeof(T);
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = count - first < kBlock ? count - first : kBlock;
    T* block = values + first;
    combine_same<Op, T>(a + first, b + first, block, size);
    for (std::size_t i = 2; i < inputs.ranks; ++i)
      combine_same<Op, T>(block, elements_of<T>(inputs, i) + first, block, size);
  }
}

/// Elements of kSize bytes, on which the operation works byte by byte.
template <class Op, std::size_t kSize>
void add_bytes(const void* input, void* partials, std::size_t count) {
  add_same<Op, std::uint8_t>(input, partials, count * kSize);
}
template <class Op, std::size_t kSize>
void reduce_bytes(const Inputs& inputs, void* out, std::size_t count) {
  reduce_same<Op, std::uint8_t>({inputs.of_rank, inputs.ranks, inputs.first * kSize}, out, count * kSize);
}

template <class T>
void scale_integers(const void* elements, void* out, std::size_t count, double factor) {
  const T* from = static_cast<const T*>(elements);
  T* to = static_cast<T*>(out);
  DDL_INDEPENDENT_ELEMENTS
  for (std::size_t e = 0; e < count; ++e) to[e] = scaled_integer(from[e], factor);
}

/// float and double.
template <class T>
void scale_floats(const void* elements, void* out, std::size_t count, double factor) {
  const T* from = static_cast<const T*>(elements);
  T* to = static_cast<T*>(out);
  const T times = static_cast<T>(factor);
  DDL_INDEPENDENT_ELEMENTS
  for (std::size_t e = 0; e < count; ++e) to[e] = one_nan(from[e] * times);
}

template <class T>
void average_floats(const void* partials, void* out, std::size_t count, std::int64_t ranks, double factor) {
  const T* from = static_cast<const T*>(partials);
  T* to = static_cast<T*>(out);
  const T divisor = static_cast<T>(ranks), times = static_cast<T>(factor);
  DDL_INDEPENDENT_ELEMENTS
  for (std::size_t e = 0; e < count; ++e) to[e] = one_nan(from[e] / divisor * times);
}

// ---- Averages of integers: sums of 64 bits with the same sign.

template <class T>
void add_to_sums(const void* input, void* partials, std::size_t count) {
  auto* sums = static_cast<std::uint64_t*>(partials);
  combine<OneLane, Sum, std::uint64_t>(sums, static_cast<const T*>(input), sums, count);
}

template <class T>
void sum_up(const Inputs& inputs, void* out, std::size_t count) {
  constexpr std::size_t kBlock = kBlockBytes / sizeof(std::uint64_t);
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = count - first < kBlock ? count - first : kBlock;
    std::uint64_t* block = static_cast<std::uint64_t*>(out) + first;
    __builtin_memset(block, 0, size * sizeof *block);
    for (std::size_t i = 0; i < inputs.ranks; ++i)
      add_to_sums<T>(elements_of<T>(inputs, i) + first, block, size);
  }
}

template <class T>
void average_integers(const void* partials, void* out, std::size_t count, std::int64_t ranks, double factor) {
  using Value = typename Choice<kIsSigned<T>, std::int64_t, std::uint64_t>::Type;
  const Value* sums = static_cast<const Value*>(partials);
  T* to = static_cast<T*>(out);
  const auto divisor = static_cast<Value>(ranks);
  for (std::size_t e = 0; e < count; ++e) to[e] = static_cast<T>(sums[e] / divisor);
  if (factor != 1.0) scale_integers<T>(out, out, count, factor);
}

// ---- Floats of 8 and 16 bits, which are combined as float.

template <class Set, class Op, class A, class B, class Out>
[[gnu::noinline]] void combine_narrow(const A* a, const B* b, Out* out, std::size_t count) {
  combine<Set, Op, float>(a, b, out, count);
}

/// out = elements / divisor * factor; either type may be float. With divisor and factor 1 only the type changes.
template <class Set, class From, class To>
[[gnu::noinline]] void convert_narrow(const From* from, To* to, std::size_t count, float divisor,
                                      float factor) {
  std::size_t e = 0;
  if constexpr (kInLanes<Set, From, To>) {
    for (; e + Set::kLanes <= count; e += Set::kLanes)
      Set::store(to + e, one_nan(Set::load(from + e) / divisor * factor));
  }
  DDL_INDEPENDENT_ELEMENTS
  for (std::size_t i = e; i < count; ++i)
    to[i] = Store<To>::from(one_nan(value_of(from[i]) / divisor * factor));
}

template <class Set, class Op, class T>
void add_narrow(const void* input, void* partials, std::size_t count) {
  float* values = static_cast<float*>(partials);
  combine_narrow<Set, Op>(values, static_cast<const T*>(input), values, count);
}

template <class Set, class Op, class T>
void narrow_partials(const Inputs& inputs, void* out, std::size_t count) {
  const T* a = elements_of<T>(inputs, 0);
  float* values = static_cast<float*>(out);
  if (inputs.ranks == 1) return combine_narrow<Set, typename Alone<Op>::Type>(a, a, values, count);
  const T* b = elements_of<T>(inputs, 1);
  constexpr std::size_t kBlock = kBlockBytes / sizeof(float);
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = count - first < kBlock ? count - first : kBlock;
    float* block = values + first;
    combine_narrow<Set, Op>(a + first, b + first, block, size);
    for (std::size_t i = 2; i < inputs.ranks; ++i)
      combine_narrow<Set, Op>(block, elements_of<T>(inputs, i) + first, block, size);
  }
}

template <class Set, class Op, class T>
void reduce_narrow(const Inputs& inputs, void* out, std::size_t count) {
  const T* a = elements_of<T>(inputs, 0);
  T* elements = static_cast<T*>(out);
  if (inputs.ranks == 1) return combine_narrow<Set, typename Alone<Op>::Type>(a, a, elements, count);
  if (inputs.ranks == 2) return combine_narrow<Set, Op>(a, elements_of<T>(inputs, 1), elements, count);
  constexpr std::size_t kBlock = kBlockBytes / sizeof(float);
  float block[kBlock];
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t size = count - first < kBlock ? count - first : kBlock;
    narrow_partials<Set, Op, T>({inputs.of_rank, inputs.ranks, inputs.first + first}, block, size);
    convert_narrow<Set>(block, elements + first, size, 1.0f, 1.0f);
  }
}

template <class Set, class T>
void scale_narrow(const void* elements, void* out, std::size_t count, double factor) {
  convert_narrow<Set>(static_cast<const T*>(elements), static_cast<float*>(out), count, 1.0f,
                      static_cast<float>(factor));
}

template <class Set, class T>
void finish_narrow(const void* partials, void* out, std::size_t count, double factor) {
  convert_narrow<Set>(static_cast<const float*>(partials), static_cast<T*>(out), count, 1.0f,
                      static_cast<float>(factor));
}

template <class Set, class T>
void average_narrow(const void* partials, void* out, std::size_t count, std::int64_t ranks, double factor) {
  convert_narrow<Set>(static_cast<const float*>(partials), static_cast<T*>(out), count,
                      static_cast<float>(ranks), static_cast<float>(factor));
}

}  // namespace
}  // namespace ddl::runtime
