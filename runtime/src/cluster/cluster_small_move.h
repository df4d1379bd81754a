// Collectives that move so little that all of it rides on the comparison of the calls.
//
// All blocks of all senders, one sender after the other, are one value of bytes. A host knows those of its own ranks and
// has zeros for the others, so an allreduce with a bitwise or makes the whole of it on every host: no step more than the
// comparison takes, no connection but those along the tree. The first lane carries it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/src/cluster/cluster_call.h"
#include "runtime/src/collective/block_move.h"

namespace ddl::runtime {

class ClusterSmallMove final : public ClusterCall {
 public:
  /// Whether it is little enough. Alike on all ranks.
  static bool serves(const ClusterPlace& place, const BlockMove& move, std::size_t element);

  /// serves() it.
  ClusterSmallMove(ClusterPlace place, const MoveInBuffers& work);
  std::uint64_t chunks() const override { return 1; }
  bool first_rides() const override { return true; }
  Reduction combine() const override { return {DDL_UINT8, DDL_BIT_OR}; }
  void fill(std::uint64_t chunk, std::byte* input) override;
  Route gather(std::uint64_t chunk, SliceBuffers& buffers) override;
  void publish(std::uint64_t chunk, SliceBuffers& buffers, std::byte* result) override;
  void take(std::uint64_t chunk) override;

 private:
  /// Of all blocks of a sender.
  std::size_t bytes_of(int sender) const;

  const BlockMove& move_;
  std::size_t element_;
  const std::byte* send_;
  std::byte* recv_;
};

}  // namespace ddl::runtime
