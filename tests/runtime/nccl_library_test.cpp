// How NCCL is loaded, and which ranks use it together.
#include <array>
#include <string>
#include <vector>

#include "runtime/src/backend/gpu_peer_info.h"
#include "runtime/src/backend/nccl/nccl_library.h"
#include "support/catch.h"

using ddl::ErrorCode;
using ddl::runtime::NcclLibrary;

TEST_CASE("a library that is not NCCL, or is not there, cannot be used, and the reason is told") {
  const auto missing = NcclLibrary::load("libnccl.so.2.of.nobody");
  REQUIRE(!missing);
  CHECK(missing.error().code() == ErrorCode::kUnavailable);
  CHECK(missing.error().message().find("libnccl.so.2.of.nobody") != std::string::npos);
  const auto other = NcclLibrary::load("libm.so.6");
  REQUIRE(!other);
  CHECK(other.error().code() == ErrorCode::kUnavailable);
  CHECK(other.error().message() == "libm.so.6: it has no ncclGetVersion");
}

TEST_CASE("ranks use each other's memory only if all of them can share it, and have one GPU") {
  using ddl::runtime::IpcPeerInfo;
  std::vector<int> job_ranks{4, 5, 7};
  std::vector<IpcPeerInfo> peers(3);
  for (IpcPeerInfo& info : peers) {
    info.has_device = info.is_wanted = 1;
    info.gpu = decltype(IpcPeerInfo::gpu)::of("GPU-0");
    info.host = ddl::runtime::HostField::of("node");
  }
  const auto with = [&](auto change) {
    auto changed = peers;
    change(changed[1]);
    return ddl::runtime::obstacle_of(changed, job_ranks);
  };
  CHECK(with([](IpcPeerInfo&) {}).empty());
  CHECK(with([](IpcPeerInfo& info) { info.is_wanted = 0; }) ==
        "DDL_GPU_OPERATIONS is not auto on rank 5 on node");
  CHECK(with([](IpcPeerInfo& info) { info.gpu = decltype(IpcPeerInfo::gpu)::of("GPU-1"); }) ==
        "rank 4 on node has GPU-0, and rank 5 on node has GPU-1");
  CHECK(with([](IpcPeerInfo& info) {
          info.obstacle = decltype(IpcPeerInfo::obstacle)::of("a part of a GPU");
        }) == "rank 5 on node: a part of a GPU");
  peers.resize(65, peers[0]);
  job_ranks.resize(65);
  CHECK(with([](IpcPeerInfo&) {}) == "more than 64 ranks");
}

TEST_CASE("ranks use NCCL together only if all of them have the same library, and a GPU of their own") {
  using ddl::contract::GpuOperations;
  using ddl::runtime::NcclPeerInfo;
  const std::array<int, 3> job_ranks{4, 5, 7};
  std::array<NcclPeerInfo, 3> peers;
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    peers[rank].has_device = 1;
    peers[rank].version = 22809;
    peers[rank].library = decltype(NcclPeerInfo::library)::of("libnccl.so.2");
    peers[rank].gpu = decltype(NcclPeerInfo::gpu)::of("GPU-" + std::to_string(rank));
    peers[rank].host = ddl::runtime::HostField::of("node" + std::to_string(rank));
  }
  const auto obstacle = [&] { return ddl::runtime::obstacle_of(peers, job_ranks); };
  CHECK(obstacle().empty());
  CHECK_FALSE(ddl::runtime::is_too_early(peers));
  const auto with = [&](auto change) {
    const auto before = peers;
    change(peers[2]);
    std::string reason = obstacle();
    peers = before;
    return reason;
  };
  CHECK(with([](NcclPeerInfo& info) { info.version = 21805; }) ==
        "rank 4 on node0 has version 2.28.9 of libnccl.so.2, and rank 7 on node2 has 2.18.5");
  CHECK(with([](NcclPeerInfo& info) {
          info.library = decltype(NcclPeerInfo::library)::of("librccl.so.1");
        }) == "rank 4 on node0 has libnccl.so.2, and rank 7 on node2 has librccl.so.1");
  CHECK(with([](NcclPeerInfo& info) { info.gpu = decltype(NcclPeerInfo::gpu)::of("GPU-1"); }) ==
        "rank 5 on node1 and rank 7 on node2 share GPU-1");
  CHECK(with([](NcclPeerInfo& info) { info.operations = GpuOperations::kStaged; }) ==
        "DDL_GPU_OPERATIONS=staged on rank 7 on node2");
  CHECK(with([](NcclPeerInfo& info) {
          info.library = {};
          info.obstacle = decltype(NcclPeerInfo::obstacle)::of("libnccl.so.2: cannot open");
        }) == "rank 7 on node2: libnccl.so.2: cannot open");
  peers[1].has_device = 0;
  CHECK(ddl::runtime::is_too_early(peers));
}
