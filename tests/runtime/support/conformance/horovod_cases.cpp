// Cases of Horovod's tests of its collectives (test_torch.py), by their names there, with values that each rank can
// compute without a reference: tensors of 17 in every dimension, up to three dimensions.
#include <numeric>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/types.h"

namespace ddl::conformance {
namespace {

constexpr std::uint64_t kSide = 17;
constexpr ddl_dtype kTypes[] = {DDL_UINT8,   DDL_INT8,    DDL_INT32,   DDL_INT64,
                                DDL_FLOAT16, DDL_FLOAT32, DDL_FLOAT64, DDL_BOOL};

/// Small whole numbers, which every type but bool holds and adds up without loss.
template <class T>
T number(std::int64_t value) {
  if constexpr (std::is_same_v<T, Flag>) {
    return static_cast<Flag>(value != 0 ? 1 : 0);
  } else {
    return narrowed<T>(static_cast<Wide<T>>(value));
  }
}

template <class T>
struct Case {
  const Communicator& world;
  std::uint64_t slice;  ///< elements of a slice across the first dimension
  std::string what;

  std::vector<T> filled(std::uint64_t slices, std::int64_t value) const {
    return std::vector<T>(slices * slice, number<T>(value));
  }
  void append(std::vector<T>& all, std::uint64_t slices, std::int64_t value) const {
    const auto more = filled(slices, value);
    all.insert(all.end(), more.begin(), more.end());
  }

  /// test_horovod_allreduce, with -100..100 from every rank (fewer where sums would not fit).
  void allreduce() const {
    if (std::is_same_v<T, Flag>) return;
    const std::int64_t max = sizeof(T) == 1 ? 10 : 100, min = std::is_unsigned_v<T> ? 0 : -max;
    std::vector<T> tensor(kSide * slice), sum(tensor.size());
    for (std::uint64_t e = 0; e < tensor.size(); ++e) {
      const auto value = min + static_cast<std::int64_t>(e * 7 % static_cast<std::uint64_t>(max - min + 1));
      tensor[e] = number<T>(value);
      sum[e] = number<T>(value * world.size);
    }
    Fenced<T> result(tensor.size());
    const auto run = [&](ddl_op op, const std::vector<T>& wanted, const char* name) {
      expect_ok(ddl_allreduce(world.context, tensor.data(), result.data(), tensor.size(), TypeOf<T>::value,
                              op, nullptr),
                what + name);
      expect_bits(result, wanted, what + name);
    };
    run(DDL_SUM, sum, "allreduce");
    run(DDL_AVERAGE, tensor, "allreduce_average");
    run(DDL_MIN, tensor, "allreduce_min");
    run(DDL_MAX, tensor, "allreduce_max");
  }

  /// test_horovod_allgather_variable_size.
  void allgather_variable_size() const {
    constexpr std::uint64_t kSizes[] = {17, 32, 81, 12, 15, 23, 22};
    std::vector<std::uint64_t> counts;
    std::vector<T> wanted;
    for (int rank = 0; rank < world.size; ++rank) {
      const std::uint64_t slices = kSizes[static_cast<std::size_t>(rank) % std::size(kSizes)] * 5;
      counts.push_back(slices * slice);
      append(wanted, slices, rank);
    }
    const auto own = counts[static_cast<std::size_t>(world.rank)];
    const std::vector<T> tensor(own, number<T>(world.rank));
    Fenced<T> gathered(wanted.size());
    expect_ok(ddl_allgatherv(world.context, tensor.data(), gathered.data(), counts.data(), TypeOf<T>::value,
                             nullptr),
              what + "allgather_variable_size");
    expect_bits(gathered, wanted, what + "allgather_variable_size");
  }

  /// splits(from, to): slices that one rank sends to another; values are the sender's rank.
  template <class Splits>
  void alltoall(const std::string& name, Splits splits) const {
    const auto size = static_cast<std::size_t>(world.size);
    std::vector<std::uint64_t> counts(size), came(size, 99), wanted_counts(size);
    std::vector<T> tensor, wanted;
    for (int other = 0; other < world.size; ++other) {
      const auto at = static_cast<std::size_t>(other);
      counts[at] = splits(world.rank, other) * slice;
      wanted_counts[at] = splits(other, world.rank) * slice;
      append(tensor, splits(world.rank, other), world.rank);
      append(wanted, splits(other, world.rank), other);
    }
    // Horovod says how much has come; here there may be more room than that.
    Fenced<T> received(wanted.size());
    std::vector<T> room(wanted.size() + slice);
    expect_ok(ddl_alltoallv(world.context, tensor.data(), counts.data(), room.data(), room.size(),
                            came.data(), TypeOf<T>::value, nullptr),
              what + name);
    expect(came == wanted_counts, what + name + ": received splits");
    if (!wanted.empty()) std::memcpy(received.data(), room.data(), wanted.size() * sizeof(T));
    expect_bits(received, wanted, what + name);
  }

  /// test_horovod_alltoall_equal_split: with the function for equal parts.
  void alltoall_equal_split() const {
    const std::string name = what + "alltoall_equal_split";
    std::vector<T> tensor, wanted;
    for (int other = 0; other < world.size; ++other) {
      append(tensor, 3, world.rank * world.size + other);
      append(wanted, 3, other * world.size + world.rank);
    }
    Fenced<T> received(wanted.size());
    expect_ok(
        ddl_alltoall(world.context, tensor.data(), received.data(), 3 * slice, TypeOf<T>::value, nullptr),
        name);
    expect_bits(received, wanted, name);
  }

  /// test_horovod_reducescatter and _uneven: the lower ranks have a slice more.
  void reducescatter(std::uint64_t further) const {
    if (std::is_same_v<T, Flag>) return;
    const std::string name = what + (further == 0 ? "reducescatter" : "reducescatter_uneven");
    std::vector<std::uint64_t> counts;
    std::vector<T> tensor, wanted;
    for (int rank = 0; rank < world.size; ++rank) {
      const std::uint64_t slices = 4 + (static_cast<std::uint64_t>(rank) < further ? 1 : 0);
      counts.push_back(slices * slice);
      append(tensor, slices, rank + 1);
      if (rank == world.rank) append(wanted, slices, (rank + 1) * world.size);
    }
    Fenced<T> received(wanted.size());
    expect_ok(ddl_reduce_scatter(world.context, tensor.data(), received.data(), counts.data(),
                                 TypeOf<T>::value, DDL_SUM, nullptr),
              name);
    expect_bits(received, wanted, name);
  }

  void all() const {
    allreduce();
    allgather_variable_size();
    alltoall_equal_split();
    const auto size = static_cast<std::uint64_t>(world.size);
    alltoall("alltoall", [](int from, int) { return static_cast<std::uint64_t>(from + 1); });
    alltoall("alltoall_zero_splits", [](int, int) { return std::uint64_t{0}; });
    alltoall("alltoall_one_rank_sends_nothing", [](int from, int) { return std::uint64_t{from != 1}; });
    alltoall("alltoall_one_rank_receives_nothing", [](int, int to) { return std::uint64_t{to != 1}; });
    alltoall("alltoall_only_to_the_next", [size](int from, int to) {
      return std::uint64_t{static_cast<std::uint64_t>(from + 1) % size == static_cast<std::uint64_t>(to)} * 5;
    });
    reducescatter(0);
    reducescatter(size / 2);
  }
};

/// test_horovod_broadcast_inplace and _rank_error.
void check_broadcasts(const Communicator& world) {
  for (int root = 0; root < world.size; ++root) {
    std::vector<double> tensor(kSide * kSide, world.rank);
    expect_ok(ddl_broadcast(world.context, tensor.data(), tensor.size(), DDL_FLOAT64, root, nullptr),
              "broadcast_inplace");
    expect(tensor == std::vector<double>(tensor.size(), root), "broadcast_inplace");
  }
  double value = 0;
  expect_status(ddl_broadcast(world.context, &value, 1, DDL_FLOAT64, world.size, nullptr),
                DDL_ERROR_INVALID_ARGUMENT, "broadcast_rank_error");
}

/// test_horovod_alltoall_splits_error_shape: one rank's splits do not fit its room.
void check_splits_error(const Communicator& world) {
  const auto size = static_cast<std::size_t>(world.size);
  const std::vector<std::uint64_t> counts(size, 2);
  std::vector<std::uint64_t> came(size);
  std::vector<float> tensor(2 * size), received(2 * size, -1);
  expect_status(ddl_alltoallv(world.context, tensor.data(), counts.data(), received.data(),
                              world.rank == 0 ? 2 * size - 1 : 2 * size, came.data(), DDL_FLOAT32, nullptr),
                DDL_ERROR_MISMATCH, "alltoall_splits_error");
  expect(received == std::vector<float>(2 * size, -1), "alltoall_splits_error: something was written");
}

/// test_horovod_allreduce_process_sets: ranks with even and with odd numbers.
void check_even_and_odd(const Communicator& world) {
  std::uint64_t set = DDL_NO_PROCESS_SET;
  expect_ok(ddl_process_set_split(world.context, DDL_WORLD, world.rank % 2, 0, &set), "process_sets");
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = set;
  std::int64_t sum = world.rank, wanted = 0;
  for (int rank = world.rank % 2; rank < world.size; rank += 2) wanted += rank;
  expect_ok(ddl_allreduce(world.context, &sum, &sum, 1, DDL_INT64, DDL_SUM, &options), "process_sets");
  expect(sum == wanted, "allreduce_process_sets");
  expect_ok(ddl_process_set_free(world.context, set), "process_sets");
}

}  // namespace

void check_horovod_cases(ddl_context* context) {
  const Communicator world = world_of(context);
  for (const ddl_dtype dtype : kTypes) {
    // More dimensions only make slices longer; the third for one type is enough.
    for (const std::uint64_t slice : {std::uint64_t{1}, kSide, kSide * kSide}) {
      if (slice > kSide && dtype != DDL_FLOAT32) continue;
      with_type(dtype, [&]<class T>() { Case<T>{world, slice, "horovod's "}.all(); });
    }
  }
  check_broadcasts(world);
  check_splits_error(world);
  check_even_and_odd(world);
}

}  // namespace ddl::conformance
