// An alltoallv: first every rank learns what all others send, then the blocks move.
#pragma once

#include <string>
#include <vector>

#include "runtime/src/channel/text_field.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/element.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/failure.h"
#include "runtime/src/transport/member.h"

namespace ddl::runtime {

/// own_host: its name. move(request, blocks, element_bytes, send, recv) moves blocks as a call; number() is that of the
/// call that was begun last. So all steps are one call to those who look from outside.
template <class Move, class Number>
Outcome alltoallv(const Request& request, int ranks, int own, const std::string& own_host, Move move,
                  Number number) {
  const auto size = static_cast<std::size_t>(ranks);
  // A rank's row: how much it has room for, and what it has for each.
  const std::size_t row = size + 1;
  std::vector<std::uint64_t> mine{request.recv_capacity}, rows(row * size);
  mine.insert(mine.end(), request.counts.begin(), request.counts.end());
  if (auto told =
          move(request, BlockMove::allgather(ranks, row), sizeof(std::uint64_t),
               reinterpret_cast<const std::byte*>(mine.data()), reinterpret_cast<std::byte*>(rows.data()));
      !told) {
    return told;
  }
  std::vector<std::uint64_t> counts;
  for (std::size_t from = 0; from < size; ++from) {
    counts.insert(counts.end(), rows.begin() + static_cast<std::ptrdiff_t>(from * row + 1),
                  rows.begin() + static_cast<std::ptrdiff_t>((from + 1) * row));
    request.recv_counts[from] = counts[from * size + static_cast<std::size_t>(own)];
  }
  for (std::size_t to = 0; to < size; ++to) {
    // Sums do not wrap: every count has been checked to fit into its sender's memory.
    std::uint64_t arriving = 0;
    for (std::size_t from = 0; from < size; ++from) arriving += counts[from * size + to];
    if (arriving > rows[to * row]) {
      // All have found this out, so they can go on together to learn where that is.
      const HostField host = HostField::of(own_host);
      std::vector<HostField> hosts(size);
      Request naming = request;
      naming.call.number = number();
      auto named =
          move(naming, BlockMove::allgather(ranks, sizeof host), 1, reinterpret_cast<const std::byte*>(&host),
               reinterpret_cast<std::byte*>(hosts.data()));
      if (!named) return named;
      const Member lacking{request.job_ranks[to], hosts[to].str(), 0};
      return failed(DDL_ERROR_MISMATCH, "alltoallv: " + lacking.place() + " is sent " +
                                            std::to_string(arriving) + " elements but has room for " +
                                            std::to_string(rows[to * row]) + " (recv_capacity)");
    }
  }
  Request second = request;
  second.call.number = number();
  return move(second, BlockMove::alltoallv(ranks, std::move(counts)), known_element_size(request.dtype()),
              request.send, request.recv);
}

}  // namespace ddl::runtime
