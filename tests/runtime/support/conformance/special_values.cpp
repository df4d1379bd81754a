#include <algorithm>
#include <cstring>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/conformance/types.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

/// Reduces one value per rank, rank r giving values[r % values.size()].
template <class T>
T allreduce_one(ddl_context* context, const std::vector<T>& values, ddl_op op) {
  T value = values[static_cast<std::size_t>(ddl_rank(context)) % values.size()];
  expect_ok(ddl_allreduce(context, &value, &value, 1, TypeOf<T>::value, op, nullptr),
            "allreduce of one value");
  return value;
}

template <class T>
void check_special_floats(ddl_context* context, const Groups& groups) {
  const int ranks = ddl_size(context);
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  for (int special_rank = 0; special_rank < ranks; ++special_rank) {
    std::vector<T> values(static_cast<std::size_t>(ranks), T{1});
    values[static_cast<std::size_t>(special_rank)] = nan;
    for (const ddl_op op : kArithmetic)
      expect(std::isnan(allreduce_one(context, values, op)), "NaN does not win");
    values[static_cast<std::size_t>(special_rank)] = -infinity;
    expect(allreduce_one(context, values, DDL_MIN) == -infinity, "min misses -infinity");
    expect(allreduce_one(context, values, DDL_MAX) == (ranks == 1 ? -infinity : T{1}), "max takes -infinity");
    expect(allreduce_one(context, values, DDL_SUM) == -infinity, "sum misses -infinity");
  }
  // Equal zeros: that of the last rank in the tree is taken, as documented.
  const T last = groups.back().back() % 2 == 1 ? T{-0.0} : T{0.0};
  for (const ddl_op op : {DDL_MIN, DDL_MAX}) {
    const T zero = allreduce_one<T>(context, {T{0.0}, T{-0.0}}, op);
    expect(zero == 0 && std::signbit(zero) == std::signbit(last), "the zero is not the last rank's");
  }
  const T tiny = std::numeric_limits<T>::denorm_min();
  expect(allreduce_one<T>(context, {tiny}, DDL_SUM) == tiny * static_cast<T>(ranks), "denormals are flushed");
}

template <class T>
void check_special_integers(ddl_context* context) {
  const int ranks = ddl_size(context);
  using Unsigned = std::make_unsigned_t<T>;
  const T max = std::numeric_limits<T>::max();
  const T wanted = static_cast<T>(static_cast<Unsigned>(max) * static_cast<Unsigned>(ranks));
  expect(allreduce_one<T>(context, {max}, DDL_SUM) == wanted, "integer sums do not wrap");
  // -1 from every second rank: the quotient lies between -1 and 0 and is cut toward zero (unless all are -1).
  const T sum = static_cast<T>(-((ranks + 1) / 2));
  expect(allreduce_one<T>(context, {T{-1}, T{0}}, DDL_AVERAGE) == sum / static_cast<T>(ranks),
         "integer averages do not round toward zero");
  expect(allreduce_one<T>(context, {T{7}}, DDL_AVERAGE) == 7,
         "the average of equal values differs from them");
}

/// A type that is narrower than its sums.
void check_wide_sums(ddl_context* context) {
  const int ranks = ddl_size(context);
  expect(allreduce_one<std::uint8_t>(context, {250}, DDL_AVERAGE) == 250, "sums of averages wrap at 8 bits");
  expect(allreduce_one<std::int32_t>(context, {INT32_MAX}, DDL_AVERAGE) == INT32_MAX,
         "sums of averages wrap at 32 bits");
  // Each rank adds half a unit of the last place to rank 0's 2048: lost if every addition rounded to 16 bits.
  std::vector<float16> values(static_cast<std::size_t>(ranks), float16(1.0f));
  values[0] = float16(2048.0f);
  const float16 sum = allreduce_one(context, values, DDL_SUM);
  expect(sum == narrowed<float16>(2048.0f + static_cast<float>(ranks - 1)),
         "float16 is rounded more than once");
  values[0].bits = 0xFD01;  // a NaN with a sign
  expect(allreduce_one(context, values, DDL_MAX).bits == 0x7E00, "a NaN is not the canonical one");
}

/// NaNs that differ in their bits, in buffers that are aligned differently on each rank: all become the same.
void check_equal_nan_bits(ddl_context* context) {
  constexpr std::uint64_t kElements = 1021;
  const int ranks = ddl_size(context), rank = ddl_rank(context);
  const auto offset = static_cast<std::size_t>(rank % 16);
  std::vector<float> send(kElements), recv(kElements + offset);
  for (std::uint64_t e = 0; e < kElements; ++e) {
    const std::uint32_t bits =
        0x7FC00000u | static_cast<std::uint32_t>(rank + 1) << 8 | static_cast<std::uint32_t>(e & 255);
    std::memcpy(&send[e], &bits, sizeof bits);
  }
  for (const ddl_op op : kArithmetic) {
    expect_ok(ddl_allreduce(context, send.data(), recv.data() + offset, kElements, DDL_FLOAT32, op, nullptr),
              "NaNs");
    std::vector<std::int32_t> all(kElements * static_cast<std::size_t>(ranks)), own(kElements);
    std::memcpy(own.data(), recv.data() + offset, kElements * sizeof(float));
    expect_ok(ddl_allgather(context, own.data(), all.data(), kElements, DDL_INT32, nullptr),
              "gathering the bits");
    expect(std::count(own.begin(), own.end(), 0x7FC00000) == static_cast<std::ptrdiff_t>(kElements),
           "a NaN is not the canonical one, op " + std::to_string(op));
    for (int other = 0; other < ranks; ++other) {
      expect(std::equal(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(kElements) * other),
             "the bits of NaNs differ between ranks, op " + std::to_string(op));
    }
  }
}

}  // namespace

void check_special_values(ddl_context* context) {
  const Groups groups = world_of(context).groups;
  check_special_floats<float>(context, groups);
  check_special_floats<double>(context, groups);
  check_special_integers<std::int32_t>(context);
  check_special_integers<std::int64_t>(context);
  check_wide_sums(context);
  check_equal_nan_bits(context);
}

}  // namespace ddl::conformance
