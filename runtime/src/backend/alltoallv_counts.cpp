#include "runtime/src/backend/alltoallv_counts.h"

#include <optional>
#include <vector>

namespace ddl::runtime {
namespace {

/// The first rank that is sent more elements than it has room for.
std::optional<std::size_t> first_overfull(const std::vector<std::uint64_t>& rows, std::size_t size) {
  for (std::size_t to = 0; to < size; ++to) {
    std::uint64_t arriving = 0;
    for (std::size_t from = 0; from < size; ++from) arriving += rows[from * (size + 1) + 1 + to];
    if (arriving > rows[to * (size + 1)]) return to;
  }
  return std::nullopt;
}

}  // namespace

tl::expected<BlockMove, Failure> exchange_counts(CollectiveBackend& host, Connections& connections,
                                                 const Request& request, CallDeadline deadline) {
  // A rank's row: the capacity of its receive buffer, and its count for each rank.
  const Membership& membership = connections.membership();
  const auto size = static_cast<std::size_t>(membership.size),
             own = static_cast<std::size_t>(membership.rank);
  std::vector<std::uint64_t> row{request.recv_capacity}, rows(size * (size + 1));
  row.insert(row.end(), request.counts.begin(), request.counts.end());
  Request numbers;
  numbers.call = make_call(CallKind::kAllgather, size + 1, DDL_UINT64);
  numbers.call.number = connections.channel().call().number;
  numbers.element_size = sizeof(std::uint64_t);
  numbers.send = reinterpret_cast<const std::byte*>(row.data());
  numbers.recv = reinterpret_cast<std::byte*>(rows.data());
  numbers.job_ranks = request.job_ranks;
  if (auto gathered = host.run(numbers, deadline); !gathered) return tl::unexpected(gathered.error());
  std::vector<std::uint64_t> counts;
  for (std::size_t from = 0; from < size; ++from) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(from * (size + 1) + 1);
    counts.insert(counts.end(), first, first + static_cast<std::ptrdiff_t>(size));
    request.recv_counts[from] = counts[from * size + own];
  }
  if (first_overfull(rows, size)) {
    // All ranks find this. The host's backend finds it again, and says it.
    Request refused = request;
    refused.call.number = connections.channel().call().number;
    auto outcome = host.run(refused, deadline);
    DDL_CHECK(!outcome, request.call.describe());
    return tl::unexpected(outcome.error());
  }
  return BlockMove::alltoallv(membership.size, std::move(counts));
}

}  // namespace ddl::runtime
