#include "runtime/support/conformance/sweep.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "runtime/support/conformance/types.h"

namespace ddl::conformance {
namespace {

/// All of them, or one that has nothing to do with what was picked from other lists at the same turn.
template <class T>
std::vector<T> picked(const std::vector<T>& all, bool every, std::uint64_t turn, std::uint64_t list) {
  if (every || all.size() < 2) return all;
  std::uint64_t x = (turn * 8 + list + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9u;
  return {all[(x >> 32) % all.size()]};
}

std::vector<int> numbers_below(int end) {
  std::vector<int> numbers(static_cast<std::size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// For collectives without an operation, one that is not used.
std::vector<ddl_op> arithmetic_of(Collective collective, ddl_dtype dtype) {
  if (!has_op(collective)) return {DDL_SUM};
  std::vector<ddl_op> ops;
  if (dtype == DDL_BOOL) return ops;
  for (const ddl_op op : kArithmetic) {
    if (collective != Collective::kScan || op != DDL_AVERAGE) ops.push_back(op);
  }
  return ops;
}

}  // namespace

std::vector<std::uint64_t> few_of(const std::vector<std::uint64_t>& counts) {
  if (counts.size() < 4) return {counts.back()};
  return {counts[1], counts[counts.size() / 2]};
}

std::vector<std::uint64_t> split_of(std::uint64_t count, int ranks, int way) {
  const auto size = static_cast<std::uint64_t>(ranks);
  std::vector<std::uint64_t> counts(size, 0);
  std::uint64_t left = count;
  const auto deal = [&](std::uint64_t rank, std::uint64_t elements) {
    counts[rank] += std::min(elements, left);
    left -= std::min(elements, left);
  };
  switch (way % kSplits) {
    case 0:
      for (std::uint64_t rank = 0; rank < size; ++rank) deal(rank, count / size + (rank < count % size));
      break;
    case 1: deal(size - 1, count); break;
    case 2:
      for (std::uint64_t rank = 1; rank < size; ++rank) deal(rank, 2 * count * rank / (size * size));
      break;
    default:
      for (std::uint64_t rank = 0; rank < size; rank += 2) deal(rank, 2 * count / (size + 1));
  }
  deal(size / 2, left);
  return counts;
}

std::vector<std::uint64_t> split_pairs_of(std::uint64_t count, int ranks, int way) {
  std::vector<std::uint64_t> pairs;
  for (int from = 0; from < ranks; ++from) {
    // One sender has nothing to give.
    const auto row = split_of(way % kSplits == 2 && from == ranks - 1 ? 0 : count, ranks, way + from);
    pairs.insert(pairs.end(), row.begin(), row.end());
  }
  return pairs;
}

void sweep(const Communicator& comm, Collective collective, const std::vector<std::uint64_t>& counts,
           Sweep what) {
  const std::vector<std::uint64_t> few = few_of(counts);
  std::uint64_t turn = 0;
  const auto try_with = [&](ddl_dtype dtype, std::uint64_t count, const std::vector<ddl_op>& ops) {
    if (ops.empty()) return;
    ++turn;
    Trial trial;
    trial.collective = collective;
    trial.dtype = dtype;
    trial.count = count;
    for (const ddl_op op : picked(ops, what.every_op, turn, 0)) {
      trial.op = op;
      trial.seed = count * 8 + static_cast<std::uint64_t>(op);
      for (const int root :
           picked(numbers_below(has_root(collective) ? comm.size : 1), what.every_root, turn, 1)) {
        trial.root = root;
        for (const int way :
             picked(numbers_below(has_counts(collective) ? kSplits : 1), what.every_split, turn, 2)) {
          if (collective == Collective::kAlltoallv) {
            trial.counts = split_pairs_of(count, comm.size, way);
          } else if (has_counts(collective)) {
            trial.counts = split_of(count, comm.size, way);
          }
          check(comm, trial);
        }
      }
    }
  };
  const auto try_type = [&](ddl_dtype dtype, const std::vector<std::uint64_t>& some) {
    for (const std::uint64_t count : some) {
      try_with(dtype, count, arithmetic_of(collective, dtype));
    }
    if (!has_op(collective)) return;
    for (const std::uint64_t count : few) try_with(dtype, count, further_ops_of(dtype));
  };
  for (const ddl_dtype dtype : kUsualTypes) try_type(dtype, counts);
  for (const ddl_dtype dtype : kOtherTypes) try_type(dtype, few);
}

}  // namespace ddl::conformance
