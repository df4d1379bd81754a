// A step in which MPI moves bytes between all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddl::runtime {

struct MpiMove {
  enum class Kind : std::uint8_t { kBroadcast, kAllgather, kGather, kScatter, kAlltoall };

  /// A rank's blocks in one buffer, by rank: how long each is, and where it begins. Bytes.
  struct Blocks {
    std::vector<int> bytes;
    std::vector<int> offsets;
  };

  Kind kind = Kind::kBroadcast;
  int root = 0;
  /// All blocks are as long as the first, and one after the other.
  bool is_even = false;
  /// This rank's own part stays where it is: in its place of recv, of a scatter's root in that of send.
  bool is_in_place = false;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  /// Of a broadcast or an allgather: one block. Of a gather likewise; of a scatter or an alltoall: one for each rank.
  Blocks sends;
  /// Of a broadcast or a scatter: one block. Of an allgather, a gather or an alltoall: one of each rank.
  Blocks receives;
};

}  // namespace ddl::runtime
