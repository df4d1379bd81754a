// The suite as it was: only until libddl has every function of ddl.h (tests/runtime/CMakeLists.txt).
#include "runtime/support/conformance.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "runtime/support/expect.h"
#include "runtime/support/reference.h"

namespace ddl::conformance {
namespace {

constexpr ddl_op kArithmetic[] = {DDL_SUM, DDL_AVERAGE, DDL_MIN, DDL_MAX, DDL_PRODUCT};
constexpr ddl_op kOnBits[] = {DDL_BIT_AND,     DDL_BIT_OR,     DDL_BIT_XOR,
                              DDL_LOGICAL_AND, DDL_LOGICAL_OR, DDL_LOGICAL_XOR};

/// The operations that elements of T have beside the usual ones; of bool, all.
template <class T>
std::vector<ddl_op> further_ops_of() {
  if constexpr (std::is_same_v<T, Flag>) {
    std::vector<ddl_op> ops(std::begin(kOnBits), std::end(kOnBits));
    ops.insert(ops.end(), {DDL_MIN, DDL_MAX});
    return ops;
  } else if constexpr (kIsInteger<T>) {
    return {std::begin(kOnBits), std::end(kOnBits)};
  } else {
    return {};
  }
}

/// Some of the counts, for what goes the same ways as something that is tried with all.
std::vector<std::uint64_t> few_of(const std::vector<std::uint64_t>& counts) {
  if (counts.size() < 4) return {counts.back()};
  return {counts[1], counts[counts.size() / 2]};
}

constexpr unsigned char kFence = 0xA5;
constexpr std::size_t kFenceBytes = 64;

std::string describe(const char* what, ddl_context* context, ddl_dtype dtype, std::uint64_t count) {
  return std::string(what) + " of " + std::to_string(count) + " elements of type " + std::to_string(dtype) +
         " on " + std::to_string(ddl_size(context)) + " ranks, rank " + std::to_string(ddl_rank(context));
}

/// A buffer between two fences that nobody may touch.
template <class T>
class Fenced {
 public:
  explicit Fenced(std::uint64_t count) : count_(count), bytes_(count * sizeof(T) + 2 * kFenceBytes, kFence) {}
  explicit Fenced(const std::vector<T>& values) : Fenced(values.size()) {
    if (!values.empty()) std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }

  T* data() { return reinterpret_cast<T*>(bytes_.data() + kFenceBytes); }
  T at(std::uint64_t e) { return data()[e]; }
  bool fences_hold() const {
    const auto is_fence = [](unsigned char byte) { return byte == kFence; };
    return std::all_of(bytes_.begin(), bytes_.begin() + kFenceBytes, is_fence) &&
           std::all_of(bytes_.end() - kFenceBytes, bytes_.end(), is_fence);
  }
  bool is_untouched() const {
    return std::all_of(bytes_.begin(), bytes_.end(), [](unsigned char byte) { return byte == kFence; });
  }
  bool equals(const std::vector<T>& values) {
    return values.size() == count_ &&
           (count_ == 0 || std::memcmp(data(), values.data(), count_ * sizeof(T)) == 0);
  }

 private:
  std::uint64_t count_;
  std::vector<unsigned char> bytes_;
};

template <class T>
void expect_bits(Fenced<T>& got, const std::vector<T>& wanted, const std::string& what) {
  expect(got.fences_hold(), what + ": wrote outside of the buffer");
  if (got.equals(wanted)) return;
  for (std::uint64_t e = 0; e < wanted.size(); ++e) {
    const T value = got.at(e);
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is promised
    expect(std::memcmp(&value, &wanted[e], sizeof(T)) == 0,
           what + ": element " + std::to_string(e) + " is " + std::to_string(static_cast<Wide<T>>(value)) +
               " instead of " + std::to_string(static_cast<Wide<T>>(wanted[e])));
  }
}

/// Which ranks are on which host, put together from what every rank says of itself.
Groups groups_of(ddl_context* context) {
  const int size = ddl_size(context);
  const std::int32_t own[] = {ddl_local_rank(context), ddl_local_size(context), ddl_cross_rank(context),
                              ddl_cross_size(context)};
  constexpr std::size_t kFields = std::size(own);
  std::vector<std::int32_t> all(kFields * static_cast<std::size_t>(size));
  expect_ok(ddl_allgather(context, own, all.data(), kFields, DDL_INT32, nullptr), "gathering the layout");
  const auto field = [&](int rank, std::size_t which) {
    return all[static_cast<std::size_t>(rank) * kFields + which];
  };
  Groups groups;
  std::vector<std::int32_t> sizes;
  for (int rank = 0; rank < size; ++rank) {
    if (field(rank, 0) != 0) continue;
    groups.push_back({rank});
    sizes.push_back(field(rank, 1));
  }
  for (int rank = 0; rank < size; ++rank) {
    const std::int32_t local_rank = field(rank, 0);
    if (local_rank == 0) continue;
    // The cross rank counts the hosts that have this local rank.
    std::int32_t cross_rank = field(rank, 2);
    std::size_t host = 0;
    while (host < groups.size() && (sizes[host] <= local_rank || cross_rank-- > 0)) ++host;
    expect(host < groups.size(), "the cross rank names no host");
    groups[host].push_back(rank);
  }
  for (std::size_t host = 0; host < groups.size(); ++host) {
    expect(groups[host].size() == static_cast<std::size_t>(sizes[host]), "a local size is wrong");
    expect(std::is_sorted(groups[host].begin(), groups[host].end()), "local ranks are not in rank order");
    for (const int rank : groups[host]) {
      const auto with_it = std::count_if(
          sizes.begin(), sizes.end(), [&](std::int32_t local_size) { return local_size > field(rank, 0); });
      expect(with_it == field(rank, 3), "a cross size is wrong");
    }
  }
  return groups;
}

template <class T>
void check_allreduce_of(ddl_context* context, const Groups& groups, std::uint64_t count, ddl_op op) {
  const ddl_dtype dtype = TypeOf<T>::value;
  const std::uint64_t seed = count * 8 + static_cast<std::uint64_t>(op);
  const std::string what = describe("allreduce", context, dtype, count) + ", op " + std::to_string(op);
  std::vector<T> wanted(count);
  for (std::uint64_t e = 0; e < count; ++e) wanted[e] = reduced_element<T>(op, groups, e, seed);
  const std::vector<T> input = input_of<T>(ddl_rank(context), count, seed);

  Fenced<T> send(input), recv(count);
  expect_ok(ddl_allreduce(context, send.data(), recv.data(), count, dtype, op, nullptr), what);
  expect_bits(recv, wanted, what);
  expect(send.equals(input), what + ": changed its input");

  Fenced<T> both(input);
  expect_ok(ddl_allreduce(context, both.data(), both.data(), count, dtype, op, nullptr), what + ", in place");
  expect_bits(both, wanted, what + ", in place");
}

template <class T>
void check_broadcast_of(ddl_context* context, std::uint64_t count, int root) {
  const std::string what =
      describe("broadcast", context, TypeOf<T>::value, count) + ", root " + std::to_string(root);
  Fenced<T> buffer(input_of<T>(ddl_rank(context), count, count));
  expect_ok(ddl_broadcast(context, buffer.data(), count, TypeOf<T>::value, root, nullptr), what);
  expect_bits(buffer, input_of<T>(root, count, count), what);
}

template <class T>
void check_allgather_of(ddl_context* context, std::uint64_t count) {
  const std::string what = describe("allgather", context, TypeOf<T>::value, count);
  const int ranks = ddl_size(context);
  std::vector<T> wanted;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto part = input_of<T>(rank, count, count);
    wanted.insert(wanted.end(), part.begin(), part.end());
  }
  const std::vector<T> input = input_of<T>(ddl_rank(context), count, count);

  Fenced<T> send(input), recv(wanted.size());
  expect_ok(ddl_allgather(context, send.data(), recv.data(), count, TypeOf<T>::value, nullptr), what);
  expect_bits(recv, wanted, what);
  expect(send.equals(input), what + ": changed its input");

  Fenced<T> both(wanted.size());
  T* own_part = both.data() + static_cast<std::uint64_t>(ddl_rank(context)) * count;
  if (count != 0) std::memcpy(own_part, input.data(), count * sizeof(T));
  expect_ok(ddl_allgather(context, own_part, both.data(), count, TypeOf<T>::value, nullptr),
            what + ", in place");
  expect_bits(both, wanted, what + ", in place");
}

/// Calls check.operator()<T>(counts) for every element type: with all counts for the usual ones, and for the others,
/// which go the same ways, with a few of them.
template <class Check>
void for_every_type(const std::vector<std::uint64_t>& counts, Check check) {
  check.template operator()<std::int32_t>(counts);
  check.template operator()<std::int64_t>(counts);
  check.template operator()<float>(counts);
  check.template operator()<double>(counts);
  const std::vector<std::uint64_t> few = few_of(counts);
  check.template operator()<std::uint8_t>(few);
  check.template operator()<std::int8_t>(few);
  check.template operator()<std::uint16_t>(few);
  check.template operator()<std::int16_t>(few);
  check.template operator()<std::uint32_t>(few);
  check.template operator()<std::uint64_t>(few);
  check.template operator()<float16>(few);
  check.template operator()<bfloat16>(few);
  check.template operator()<Flag>(few);
}

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
  for (int odd = 0; odd < ranks; ++odd) {
    std::vector<T> values(static_cast<std::size_t>(ranks), T{1});
    values[static_cast<std::size_t>(odd)] = nan;
    for (const ddl_op op : kArithmetic)
      expect(std::isnan(allreduce_one(context, values, op)), "NaN does not win");
    values[static_cast<std::size_t>(odd)] = -infinity;
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
  constexpr std::uint64_t kCount = 1021;
  const int ranks = ddl_size(context), rank = ddl_rank(context);
  const auto offset = static_cast<std::size_t>(rank % 16);
  std::vector<float> send(kCount), recv(kCount + offset);
  for (std::uint64_t e = 0; e < kCount; ++e) {
    const std::uint32_t bits =
        0x7FC00000u | static_cast<std::uint32_t>(rank + 1) << 8 | static_cast<std::uint32_t>(e & 255);
    std::memcpy(&send[e], &bits, sizeof bits);
  }
  for (const ddl_op op : kArithmetic) {
    expect_ok(ddl_allreduce(context, send.data(), recv.data() + offset, kCount, DDL_FLOAT32, op, nullptr),
              "NaNs");
    std::vector<std::int32_t> all(kCount * static_cast<std::size_t>(ranks)), own(kCount);
    std::memcpy(own.data(), recv.data() + offset, kCount * sizeof(float));
    expect_ok(ddl_allgather(context, own.data(), all.data(), kCount, DDL_INT32, nullptr),
              "gathering the bits");
    expect(std::count(own.begin(), own.end(), 0x7FC00000) == static_cast<std::ptrdiff_t>(kCount),
           "a NaN is not the canonical one, op " + std::to_string(op));
    for (int other = 0; other < ranks; ++other) {
      expect(std::equal(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(kCount) * other),
             "the bits of NaNs differ between ranks, op " + std::to_string(op));
    }
  }
}

/// One rank's call in a test of mismatches.
struct Variant {
  const char* differs;
  const char* signature;
  ddl_status (*call)(ddl_context*, float* send, float* recv);
};

constexpr std::uint64_t kMismatchCount = 10;

const Variant kUsual = {
    "", "allreduce(sum, float32, 10 elements)", [](ddl_context* context, float* send, float* recv) {
      return ddl_allreduce(context, send, recv, kMismatchCount, DDL_FLOAT32, DDL_SUM, nullptr);
    }};
const Variant kOdd[] = {
    {"count", "allreduce(sum, float32, 9 elements)",
     [](ddl_context* context, float* send, float* recv) {
       return ddl_allreduce(context, send, recv, kMismatchCount - 1, DDL_FLOAT32, DDL_SUM, nullptr);
     }},
    {"count 0", "allreduce(sum, float32, 0 elements)",
     [](ddl_context* context, float* send, float* recv) {
       return ddl_allreduce(context, send, recv, 0, DDL_FLOAT32, DDL_SUM, nullptr);
     }},
    {"type", "allreduce(sum, int32, 10 elements)",
     [](ddl_context* context, float* send, float* recv) {
       return ddl_allreduce(context, send, recv, kMismatchCount, DDL_INT32, DDL_SUM, nullptr);
     }},
    {"operation", "allreduce(max, float32, 10 elements)",
     [](ddl_context* context, float* send, float* recv) {
       return ddl_allreduce(context, send, recv, kMismatchCount, DDL_FLOAT32, DDL_MAX, nullptr);
     }},
    {"collective", "allgather(float32, 10 elements)",
     [](ddl_context* context, float* send, float* recv) {
       return ddl_allgather(context, send, recv, kMismatchCount, DDL_FLOAT32, nullptr);
     }},
    {"barrier", "barrier()",
     [](ddl_context* context, float*, float*) { return ddl_barrier(context, nullptr); }},
    {"broadcast", "broadcast(root 1, float32, 10 elements)",
     [](ddl_context* context, float*, float* recv) {
       return ddl_broadcast(context, recv, kMismatchCount, DDL_FLOAT32, 1, nullptr);
     }},
    {"several chunks", "allreduce(sum, float32, 100000 elements)",
     [](ddl_context* context, float*, float*) {
       std::vector<float> large(100000);
       return ddl_allreduce(context, large.data(), large.data(), large.size(), DDL_FLOAT32, DDL_SUM, nullptr);
     }},
};

void check_mismatch(ddl_context* context, const Groups& groups, const Variant& usual, const Variant& odd,
                    int odd_rank) {
  const int rank = ddl_rank(context);
  const std::string what = std::string("mismatch of ") + odd.differs + " on rank " + std::to_string(odd_rank);
  Fenced<float> send(input_of<float>(rank, kMismatchCount, 1));
  Fenced<float> recv(kMismatchCount * static_cast<std::uint64_t>(ddl_size(context)));
  const Variant& own = rank == odd_rank ? odd : usual;
  expect_status(own.call(context, send.data(), recv.data()), DDL_ERROR_MISMATCH, what);
  const std::string sentence = ddl_last_error();
  expect(recv.is_untouched(), what + ": a receive buffer was written");
  expect_contains(sentence, std::string("rank 0 on "));
  // All are compared with rank 0; if that is the odd one, the next of the tree is named.
  const int next = groups[0].size() > 1 ? groups[0][1] : groups[1][0];
  expect_contains(sentence, "rank " + std::to_string(odd_rank == 0 ? next : odd_rank) + " on ");
  expect_contains(sentence, std::string(" called ") + usual.signature);
  expect_contains(sentence, std::string(" called ") + odd.signature);
  check_allreduce_of<float>(context, groups, 5, DDL_SUM);
}

}  // namespace

std::vector<std::uint64_t> interesting_counts(std::uint64_t slot_bytes, int ranks) {
  const auto size = static_cast<std::uint64_t>(ranks);
  std::vector<std::uint64_t> counts{0, 1, 2, 3, size - 1, size, size + 1, 5 * slot_bytes / 8 + 3};
  for (const std::uint64_t slot : {slot_bytes / 4, slot_bytes / 8}) {
    for (const std::uint64_t count : {slot - 1, slot, slot + 1, 2 * slot, 3 * slot + 1})
      counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

void check_allreduce(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  const Groups groups = groups_of(context);
  for_every_type(counts, [&]<class T>(const std::vector<std::uint64_t>& some) {
    if constexpr (!std::is_same_v<T, Flag>) {
      for (const std::uint64_t count : some) {
        for (const ddl_op op : kArithmetic) check_allreduce_of<T>(context, groups, count, op);
      }
    }
    for (const std::uint64_t count : few_of(counts)) {
      for (const ddl_op op : further_ops_of<T>()) check_allreduce_of<T>(context, groups, count, op);
    }
  });
}

void check_broadcast(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  for_every_type(counts, [&]<class T>(const std::vector<std::uint64_t>& some) {
    for (const std::uint64_t count : some) {
      for (int root = 0; root < ddl_size(context); ++root) check_broadcast_of<T>(context, count, root);
    }
  });
}

void check_allgather(ddl_context* context, const std::vector<std::uint64_t>& counts) {
  for_every_type(counts, [&]<class T>(const std::vector<std::uint64_t>& some) {
    for (const std::uint64_t count : some) check_allgather_of<T>(context, count);
  });
}

void check_special_values(ddl_context* context) {
  const Groups groups = groups_of(context);
  check_special_floats<float>(context, groups);
  check_special_floats<double>(context, groups);
  check_special_integers<std::int32_t>(context);
  check_special_integers<std::int64_t>(context);
  check_wide_sums(context);
  check_equal_nan_bits(context);
}

void check_mismatches(ddl_context* context, Extent) {
  if (ddl_size(context) == 1) return;
  const Groups groups = groups_of(context);
  for (int odd_rank = 0; odd_rank < ddl_size(context); ++odd_rank) {
    for (const Variant& odd : kOdd) check_mismatch(context, groups, kUsual, odd, odd_rank);
    const Variant root0 = {"", "broadcast(root 0, float32, 10 elements)",
                           [](ddl_context* self, float*, float* recv) {
                             return ddl_broadcast(self, recv, kMismatchCount, DDL_FLOAT32, 0, nullptr);
                           }};
    const Variant root1 = {"root", "broadcast(root 1, float32, 10 elements)",
                           [](ddl_context* self, float*, float* recv) {
                             return ddl_broadcast(self, recv, kMismatchCount, DDL_FLOAT32, 1, nullptr);
                           }};
    check_mismatch(context, groups, root0, root1, odd_rank);
  }
}

void check_bad_arguments(ddl_context* context) {
  const int size = ddl_size(context);
  std::vector<double> buffer(static_cast<std::size_t>(size) * 8 + 16);
  double* data = buffer.data();
  const auto refused = [&](ddl_status status, const char* part) {
    expect_status(status, DDL_ERROR_INVALID_ARGUMENT, part);
    expect_contains(ddl_last_error(), part);
  };
  const auto unsupported = [&](ddl_status status, const char* part) {
    expect_status(status, DDL_ERROR_UNSUPPORTED, part);
    expect_contains(ddl_last_error(), part);
  };
  refused(ddl_allreduce(nullptr, data, data, 1, DDL_FLOAT64, DDL_SUM, nullptr), "context is null");
  refused(ddl_allreduce(context, nullptr, data, 1, DDL_FLOAT64, DDL_SUM, nullptr), "send is null");
  refused(ddl_allreduce(context, data, nullptr, 1, DDL_FLOAT64, DDL_SUM, nullptr), "recv is null");
  refused(ddl_allreduce(context, data, data, 1, 99, DDL_SUM, nullptr), "dtype 99 does not exist");
  refused(ddl_allreduce(context, data, data, 1, -1, DDL_SUM, nullptr), "dtype -1 does not exist");
  refused(ddl_allreduce(context, data, data, 1, DDL_FLOAT64, 11, nullptr), "op 11 does not exist");
  refused(ddl_allreduce(context, data, data, 1, DDL_BFLOAT16, DDL_BIT_AND, nullptr),
          "there is no bitwise and of bfloat16");
  refused(ddl_allreduce(context, data, data, 1, DDL_BOOL, DDL_AVERAGE, nullptr),
          "there is no average of bool");
  refused(ddl_allreduce(context, data, data, UINT64_MAX / 8, DDL_FLOAT64, DDL_SUM, nullptr),
          "does not fit into memory");
  refused(ddl_allreduce(context, data, data + 1, 2, DDL_FLOAT64, DDL_SUM, nullptr), "overlap");
  refused(ddl_allreduce(context, data + 1, data, 2, DDL_FLOAT64, DDL_SUM, nullptr), "overlap");
  auto* bytes = reinterpret_cast<unsigned char*>(data);
  refused(ddl_allreduce(context, bytes + 4, data + 8, 1, DDL_FLOAT64, DDL_SUM, nullptr),
          "send is not aligned");
  refused(ddl_allreduce(context, data, bytes + 65, 1, DDL_FLOAT32, DDL_SUM, nullptr), "recv is not aligned");
  refused(ddl_broadcast(context, data, 1, DDL_FLOAT64, -1, nullptr), "root -1 is not a rank");
  refused(ddl_broadcast(context, data, 1, DDL_FLOAT64, size, nullptr), "is not a rank of 0 to");
  refused(ddl_broadcast(context, nullptr, 1, DDL_FLOAT64, 0, nullptr), "buffer is null");
  refused(ddl_allgather(context, data + (ddl_rank(context) == 0 ? 1 : 0), data, 2, DDL_FLOAT64, nullptr),
          "overlap");
  refused(ddl_allgather(context, data, data, UINT64_MAX / 8, DDL_FLOAT64, nullptr),
          "does not fit into memory");
  refused(ddl_barrier(nullptr, nullptr), "context is null");

  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.struct_size = 0;
  refused(ddl_barrier(context, &options), "initialise the struct with DDL_CALL_OPTIONS_INIT");
  options = DDL_CALL_OPTIONS_INIT;
  options.reserved = 1;
  refused(ddl_barrier(context, &options), "reserved is not 0");
  options = DDL_CALL_OPTIONS_INIT;
  options.timeout_seconds = -1;
  refused(ddl_barrier(context, &options), "timeout_seconds is not a number of seconds");
  options.timeout_seconds = std::numeric_limits<double>::quiet_NaN();
  refused(ddl_barrier(context, &options), "timeout_seconds is not a number of seconds");
  options = DDL_CALL_OPTIONS_INIT;
  options.process_set = 7;
  unsupported(ddl_barrier(context, &options), "process set 7 does not exist");
  options = DDL_CALL_OPTIONS_INIT;
  options.stream = data;
  unsupported(ddl_barrier(context, &options), "host memory only");

  // Refused calls were not calls: nobody waits, and the next one fits. Empty calls may have null buffers.
  expect_ok(ddl_allreduce(context, nullptr, nullptr, 0, DDL_FLOAT64, DDL_SUM, nullptr), "empty allreduce");
  expect_ok(ddl_broadcast(context, nullptr, 0, DDL_FLOAT64, 0, nullptr), "empty broadcast");
  expect_ok(ddl_allgather(context, nullptr, nullptr, 0, DDL_FLOAT64, nullptr), "empty allgather");
  options = DDL_CALL_OPTIONS_INIT;
  expect_ok(ddl_barrier(context, &options), "barrier with default options");
}

void check_all(ddl_context* context, const std::vector<std::uint64_t>& counts, Extent) {
  check_allreduce(context, counts);
  check_broadcast(context, counts);
  check_allgather(context, counts);
  check_special_values(context);
  check_mismatches(context, Extent::kSome);
  check_bad_arguments(context);
}

}  // namespace ddl::conformance
