#include "runtime/src/collective/reduce_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ddl/float8.hpp"
#include "ddl/half.hpp"
#include "runtime/src/collective/instruction_set.h"
#include "runtime/src/common/call.h"
#include "runtime/support/plain_reduction.h"
#include "support/catch.h"

using namespace ddl::runtime;
using ddl::bfloat16;
using ddl::float16;
using ddl::test::plain_reduction;

namespace {

using Bytes = std::vector<std::byte>;

/// Restores the choice for the tests that follow.
class KeepInstructionSet {
 public:
  ~KeepInstructionSet() { choose_instruction_set(before_); }

 private:
  InstructionSet before_ = instruction_set();
};

/// Random bits: some floats are infinite, some are NaNs of every kind, some are tiny.
Bytes random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  // Exponents of all ones are rare otherwise, and so are zeros.
  for (std::size_t i = 7; i < size; i += 61) bytes[i] = std::byte{0x7F};
  for (std::size_t i = 64; i + 8 < size; i += 136) std::memset(&bytes[i], 0, 8);
  return bytes;
}

std::vector<Bytes> random_inputs(std::size_t ranks, std::size_t count, unsigned seed) {
  std::vector<Bytes> inputs;
  for (std::size_t i = 0; i < ranks; ++i)
    inputs.push_back(random_bytes(count * 8, seed + static_cast<unsigned>(i)));
  return inputs;
}

/// The inputs' elements from the first-th on.
std::vector<const std::byte*> pointers(const Reduction& reduction, const std::vector<Bytes>& inputs,
                                       std::size_t first = 0) {
  std::vector<const std::byte*> all;
  for (const Bytes& input : inputs) all.push_back(input.data() + first * element_size(reduction.dtype));
  return all;
}

Bytes reduced(const Reduction& reduction, const std::vector<Bytes>& inputs, std::size_t count,
              std::size_t first = 0) {
  Bytes out(count * element_size(reduction.dtype));
  reduce_chunk(reduction, pointers(reduction, inputs, first), out.data(), count);
  return out;
}

/// The first byte that differs, or -1: printing both arrays after a failure would take minutes.
std::ptrdiff_t difference(const Bytes& got, const Bytes& wanted) {
  if (got == wanted) return -1;
  const auto end = got.begin() + static_cast<std::ptrdiff_t>(std::min(got.size(), wanted.size()));
  return std::mismatch(got.begin(), end, wanted.begin()).first - got.begin();
}

/// A vector of numbers as an input, and back.
template <class T>
Bytes bytes_of(const std::vector<T>& elements) {
  Bytes bytes(elements.size() * sizeof(T));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> elements_of(const Bytes& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

/// One element of every rank, reduced.
template <class T>
T one(const Reduction& reduction, const std::vector<T>& of_rank) {
  std::vector<Bytes> inputs;
  for (const T element : of_rank) inputs.push_back(bytes_of<T>({element}));
  return elements_of<T>(reduced(reduction, inputs, 1)).front();
}

struct Scales {
  double before, after;
};
constexpr Scales kUnscaled{1.0, 1.0};
// 1e30 exceeds every integer type, 1e-60 is 0 as a float.
constexpr Scales kScales[] = {kUnscaled,   {0.5, 1.0},  {1.0, 0.5},   {-3.0, 1.0},   {1.0, -3.0},
                              {0.1, -0.7}, {1e30, 1.0}, {1.0, -1e30}, {1e-60, 1e30}, {1e300, 1e300}};

/// Every combination that exists; bool has no scales.
template <class Check>
void for_each_reduction(Check check) {
  for (const ddl_dtype dtype : kDtypes) {
    for (ddl_op op = 0; op <= DDL_LOGICAL_XOR; ++op) {  // those of single elements
      if (!op_applies(op, dtype)) continue;
      for (const Scales& scales : kScales) {
        if (dtype == DDL_BOOL && (scales.before != 1.0 || scales.after != 1.0)) continue;
        CAPTURE(dtype_name(dtype), op_name(op), scales.before, scales.after);
        check(Reduction{dtype, op, scales.before, scales.after});
      }
    }
  }
}

template <class Check>
void for_each_instruction_set(Check check) {
  const KeepInstructionSet keep;
  for (const InstructionSet set : instruction_sets()) {
    choose_instruction_set(set);
    CAPTURE(static_cast<int>(set));
    check();
  }
}

}  // namespace

TEST_CASE("every type, operation and scale gives the documented result") {
  constexpr std::size_t kCount = 150;
  const std::vector<Bytes> all = random_inputs(4, kCount, 1);
  for_each_reduction([&](const Reduction& reduction) {
    for (const std::size_t ranks : {1u, 2u, 4u}) {
      const std::vector<Bytes> inputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(ranks));
      CAPTURE(ranks);
      CHECK(difference(reduced(reduction, inputs, kCount), plain_reduction(reduction, inputs, kCount)) == -1);
    }
  });
}

TEST_CASE("every instruction set gives the same bits, wherever elements start and however many there are") {
  const KeepInstructionSet keep;
  const std::vector<Bytes> all = random_inputs(3, 1100, 11);
  struct Part {
    std::size_t first, count;
  };
  // Tails of every length below a vector; more than a block; nothing.
  const Part parts[] = {{0, 0}, {1, 1}, {3, 7}, {5, 16}, {1, 47}, {2, 63}, {7, 1091}};
  for_each_reduction([&](const Reduction& reduction) {
    for (std::size_t ranks = 1; ranks <= all.size(); ++ranks) {
      const std::vector<Bytes> inputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(ranks));
      for (const Part& part : parts) {
        choose_instruction_set(InstructionSet::kBaseline);
        const Bytes wanted = reduced(reduction, inputs, part.count, part.first);
        for (const InstructionSet set : instruction_sets()) {
          choose_instruction_set(set);
          if (reduced(reduction, inputs, part.count, part.first) == wanted) continue;
          CAPTURE(ranks, part.first, part.count, static_cast<int>(set));
          FAIL_CHECK("other bits than the baseline's");
        }
      }
    }
  });
}

TEST_CASE("the bits do not depend on how a chunk is cut, or on reducing it in place") {
  constexpr std::size_t kCount = 2100;
  const std::vector<Bytes> inputs = random_inputs(3, kCount, 4);
  for_each_instruction_set([&] {
    for_each_reduction([&](const Reduction& reduction) {
      const std::size_t size = element_size(reduction.dtype);
      const Bytes whole = reduced(reduction, inputs, kCount);
      Bytes pieces(whole.size());
      for (std::size_t first = 0, length = 1; first < kCount; first += length, length = 2 * length + 1) {
        length = std::min(length, kCount - first);
        reduce_chunk(reduction, pointers(reduction, inputs, first), pieces.data() + first * size, length);
      }
      CHECK(difference(pieces, whole) == -1);
      for (const std::size_t place : {0u, 1u}) {
        Bytes both = inputs[place];
        std::vector<const std::byte*> parts = pointers(reduction, inputs);
        parts[place] = both.data();
        reduce_chunk(reduction, parts, both.data(), kCount);
        both.resize(whole.size());
        CHECK(difference(both, whole) == -1);
      }
    });
  });
}

TEST_CASE("the two halves of a reduction give the result of the complete one") {
  constexpr std::size_t kCount = 1200;
  const std::vector<Bytes> inputs = random_inputs(3, kCount, 7);
  for_each_reduction([&](const Reduction& reduction) {
    const ddl_dtype partial = partial_dtype(reduction.dtype, reduction.op);
    Bytes partials(kCount * element_size(partial)), out(kCount * element_size(reduction.dtype));
    reduce_partials(reduction, pointers(reduction, inputs), partials.data(), kCount);
    finish_chunk(reduction, partials.data(), out.data(), kCount, 3);
    const Bytes whole = reduced(reduction, inputs, kCount);
    CHECK(difference(out, whole) == -1);
    if (partial == reduction.dtype) {
      finish_chunk(reduction, partials.data(), partials.data(), kCount, 3);
      CHECK(difference(partials, whole) == -1);
    }
  });
}

TEST_CASE("partial results of some ranks combine to the complete result") {
  // Integers, whose order does not matter.
  constexpr std::size_t kCount = 700;
  const std::vector<Bytes> inputs = random_inputs(3, kCount, 17);
  for_each_reduction([&](const Reduction& reduction) {
    if (is_floating(reduction.dtype)) return;
    const ddl_dtype partial = partial_dtype(reduction.dtype, reduction.op);
    const std::size_t bytes = kCount * element_size(partial);
    Bytes left(bytes), right(bytes), both(bytes);
    const std::vector<const std::byte*> two{inputs[0].data(), inputs[1].data()}, last{inputs[2].data()};
    reduce_partials(reduction, two, left.data(), kCount);
    reduce_partials(reduction, last, right.data(), kCount);
    const std::vector<const std::byte*> sides{left.data(), right.data()};
    reduce_chunk({partial, reduction.op == DDL_AVERAGE ? DDL_SUM : reduction.op}, sides, both.data(), kCount);
    Bytes out(kCount * element_size(reduction.dtype));
    finish_chunk(reduction, both.data(), out.data(), kCount, 3);
    CHECK(difference(out, reduced(reduction, inputs, kCount)) == -1);
  });
}

TEST_CASE("the partial results of no rank change no others, on either side") {
  constexpr std::size_t kCount = 700;
  std::vector<Bytes> inputs = random_inputs(2, kCount, 23);
  // Sums of -0, as float64 and as smaller floats.
  for (Bytes& input : inputs) {
    std::fill_n(input.begin(), 64, std::byte{0});
    for (std::size_t i = 7; i < 64; i += 8) input[i] = std::byte{0x80};
  }
  for_each_reduction([&](const Reduction& reduction) {
    const std::size_t bytes = kCount * element_size(partial_dtype(reduction.dtype, reduction.op));
    Bytes nobody(bytes), somebody(bytes), merged(bytes);
    fill_identity(reduction.dtype, reduction.op, nobody.data(), kCount);
    reduce_partials(reduction, pointers(reduction, inputs), somebody.data(), kCount);
    const std::vector<const std::byte*> left{nobody.data(), somebody.data()};
    const std::vector<const std::byte*> right{somebody.data(), nobody.data()};
    reduce_chunk(merge_of(reduction), left, merged.data(), kCount);
    CHECK(difference(merged, somebody) == -1);
    reduce_chunk(merge_of(reduction), right, merged.data(), kCount);
    CHECK(difference(merged, somebody) == -1);
    // Two hosts without data.
    reduce_chunk(merge_of(reduction), std::vector<const std::byte*>{nobody.data(), nobody.data()},
                 merged.data(), kCount);
    CHECK(difference(merged, nobody) == -1);
  });
}

TEST_CASE("scales of integers truncate toward zero and saturate at the ends of the type") {
  CHECK(one<std::int32_t>({DDL_INT32, DDL_SUM, 0.5, 1.0}, {-3, 5}) == 1);  // -1 + 2
  CHECK(one<std::int32_t>({DDL_INT32, DDL_SUM, 1.0, 0.5}, {-3, -4}) == -3);
  CHECK(one<std::uint8_t>({DDL_UINT8, DDL_SUM, -3.0, 1.0}, {1, 2}) == 0);
  CHECK(one<std::int8_t>({DDL_INT8, DDL_MAX, 1.0, 2.0}, {-100, -70}) == -128);
  CHECK(one<std::int64_t>({DDL_INT64, DDL_SUM, 1e30, 1.0}, {1, 0}) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(one<std::int64_t>({DDL_INT64, DDL_SUM, 1.0, 1e30}, {-1, 0}) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(one<std::uint64_t>({DDL_UINT64, DDL_MIN, 1.0, 2.0}, {~0ull, ~0ull}) == ~0ull);
  // Each element of an average is truncated in its own type before it is added, and the average once more.
  CHECK(one<std::int8_t>({DDL_INT8, DDL_AVERAGE, 2.0, 1.0}, {100, 1}) == (127 + 2) / 2);
  CHECK(one<std::int8_t>({DDL_INT8, DDL_AVERAGE, 1.0, 1.5}, {2, 3}) == 3);  // 5 / 2 = 2, 2 * 1.5
  // Scaled to 0 an element is false; a truth value is scaled as the number that it is.
  CHECK(one<std::int16_t>({DDL_INT16, DDL_LOGICAL_AND, 0.25, 1.0}, {3, 9}) == 0);
  CHECK(one<std::int16_t>({DDL_INT16, DDL_LOGICAL_OR, 1.0, 7.0}, {0, 9}) == 7);
}

TEST_CASE("scales of 16-bit floats are multiplied as float") {
  // As float16 the scaled inputs would be infinite, and 2049 would have been rounded to 2048.
  const auto half = [](const Reduction& reduction, const std::vector<float>& values) {
    std::vector<float16> elements;
    for (const float value : values) elements.emplace_back(value);
    return static_cast<float>(one(reduction, elements));
  };
  CHECK(half({DDL_FLOAT16, DDL_SUM, 1000.0, 0.001}, {200.0f, 100.0f}) == static_cast<float>(float16(300.0f)));
  CHECK(half({DDL_FLOAT16, DDL_SUM, 1.0, 3.0}, {2048.0f, 1.0f}) == 6148.0f);
  CHECK(half({DDL_FLOAT16, DDL_AVERAGE, 1.0, 3.0}, {1.0f, 2.0f}) == 4.5f);
  CHECK(half({DDL_FLOAT16, DDL_SUM, 1.0, 1e30}, {1.0f, 1.0f}) == std::numeric_limits<float>::infinity());
}

TEST_CASE("a scale that makes a NaN makes the one without a sign") {
  const float infinite = std::numeric_limits<float>::infinity();
  const float with_sign = std::copysign(std::numeric_limits<float>::quiet_NaN(), -1.0f);
  const auto bits = [](const Reduction& reduction, float a, float b) {
    std::uint32_t all = 0;
    const float result = one<float>(reduction, {a, b});
    std::memcpy(&all, &result, sizeof all);
    return all;
  };
  // As a float 1e-60 is 0, and 1e60 is infinite.
  CHECK(bits({DDL_FLOAT32, DDL_SUM, 1e-60, 1.0}, infinite, 1.0f) == 0x7FC00000u);
  CHECK(bits({DDL_FLOAT32, DDL_MAX, 1.0, 1e60}, 0.0f, -1.0f) == 0x7FC00000u);
  CHECK(bits({DDL_FLOAT32, DDL_AVERAGE, 1.0, -0.5}, with_sign, 1.0f) == 0x7FC00000u);
  CHECK(bits({DDL_FLOAT32, DDL_SUM, -0.5, 1.0}, 1.0f, with_sign) == 0x7FC00000u);
}

TEST_CASE(
    "narrow floats convert as in ddl/half.hpp and ddl/float8.hpp, each of them and values between them") {
  const auto check = [&]<class Narrow>(ddl_dtype dtype, Narrow) {
    using Bits = decltype(Narrow::bits);
    constexpr std::size_t kAll = std::size_t{1} << (8 * sizeof(Narrow));
    std::vector<Bits> patterns(kAll);
    for (std::size_t i = 0; i < kAll; ++i) patterns[i] = static_cast<Bits>(i);
    const Bytes input = bytes_of(patterns);
    const std::vector<const std::byte*> inputs{input.data()};
    Bytes wide(kAll * sizeof(float));
    reduce_partials({dtype, DDL_SUM}, inputs, wide.data(), kAll);
    std::vector<float> wanted(kAll), between;
    for (std::size_t i = 0; i < kAll; ++i) {
      Narrow element;
      element.bits = patterns[i];
      wanted[i] = std::isnan(static_cast<float>(element)) ? std::numeric_limits<float>::quiet_NaN() : element;
      Narrow next = element;
      ++next.bits;
      const float middle = (element + next) / 2;
      for (const float value :
           {wanted[i], std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e38f)})
        between.push_back(value);
    }
    for (const float value : {465.0f, -1e5f, 1e30f, std::numeric_limits<float>::infinity()})
      between.push_back(value);
    CHECK(difference(wide, bytes_of(wanted)) == -1);

    Bytes out(between.size() * sizeof(Narrow));
    const Bytes values = bytes_of(between);
    finish_chunk({dtype, DDL_SUM}, values.data(), out.data(), between.size(), 1);
    std::vector<Bits> rounded;
    for (const float value : between) rounded.push_back(Narrow(value).bits);
    CHECK(difference(out, bytes_of(rounded)) == -1);
  };
  for_each_instruction_set([&] {
    check(DDL_FLOAT16, float16());
    check(DDL_BFLOAT16, bfloat16());
    check(DDL_FLOAT8_E4M3FN, ddl::float8_e4m3fn());
    check(DDL_FLOAT8_E5M2, ddl::float8_e5m2());
    check(DDL_FLOAT8_E4M3FNUZ, ddl::float8_e4m3fnuz());
    check(DDL_FLOAT8_E5M2FNUZ, ddl::float8_e5m2fnuz());
  });
}
