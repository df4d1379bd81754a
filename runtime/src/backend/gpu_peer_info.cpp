#include "runtime/src/backend/gpu_peer_info.h"

#include <cstdlib>
#include <map>
#include <random>
#include <string_view>

#include "contract/environment.h"
#include "runtime/src/backend/nccl/nccl_library.h"

namespace ddl::runtime {
namespace {

Status fill(NcclPeerInfo& info, Device& device) {
  DeviceRuntime& runtime = device.runtime();
  DDL_ASSIGN(library, NcclLibrary::load(runtime.collectives_library()));
  DDL_ASSIGN(uuid, runtime.uuid(device.ordinal()));
  // The environment beats what a communicator is made with.
  if (const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
      blocking != nullptr && std::string_view(blocking) == "1") {
    return fail(ErrorCode::kUnavailable,
                "NCCL_COMM_BLOCKING=1 makes communicators that cannot be given up when a rank dies");
  }
  const CurrentDevice current(device);
  DDL_TRY(current.status());
  info.has_kernels = device.prepare_kernels(GpuProgram::kForNccl) ? 1 : 0;
  info.library = TextField<32>::of(library->file());
  info.version = library->version();
  if (info.version >= nccl::kOldestWithFloat8) info.float8 = device.float8_formats();
  info.gpu = TextField<64>::of(uuid);
  return {};
}

std::string label_of(const auto& info, int job_rank) { return Member{job_rank, info.host.str(), 0}.label(); }

}  // namespace

NcclPeerInfo NcclPeerInfo::of(Device* device, contract::GpuOperations operations, const std::string& host) {
  NcclPeerInfo info;
  info.operations = operations;
  info.host = HostField::of(host);
  if (device == nullptr) return info;
  info.has_device = 1;
  if (operations == contract::GpuOperations::kStaged) return info;
  if (auto filled = fill(info, *device); !filled)
    info.obstacle = TextField<200>::of(filled.error().message());
  return info;
}

std::string obstacle_of(std::span<const NcclPeerInfo> peers, std::span<const int> job_ranks) {
  const auto label = [&](std::size_t rank) { return label_of(peers[rank], job_ranks[rank]); };
  const NcclPeerInfo& first = peers.front();
  std::map<std::string, std::size_t> ranks_by_gpu;
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    const NcclPeerInfo& info = peers[rank];
    if (info.operations == contract::GpuOperations::kStaged)
      return std::string(contract::env::kGpuOperations) + "=staged on " + label(rank);
    if (info.library.str().empty()) return label(rank) + ": " + info.obstacle.str();
    if (info.library.str() != first.library.str()) {
      return label(0) + " has " + first.library.str() + ", and " + label(rank) + " has " + info.library.str();
    }
    if (info.version != first.version) {
      return label(0) + " has version " + nccl_version_text(first.version) + " of " + first.library.str() +
             ", and " + label(rank) + " has " + nccl_version_text(info.version);
    }
    const auto [known, is_first] = ranks_by_gpu.emplace(info.gpu.str(), rank);
    if (!is_first) return label(known->second) + " and " + label(rank) + " share " + info.gpu.str();
  }
  return "";
}

std::string obstacle_of(std::span<const IpcPeerInfo> peers, std::span<const int> job_ranks) {
  const auto label = [&](std::size_t rank) { return label_of(peers[rank], job_ranks[rank]); };
  if (peers.size() > CombinationArguments::kMost)
    return "more than " + std::to_string(CombinationArguments::kMost) + " ranks";
  const IpcPeerInfo& first = peers.front();
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    const IpcPeerInfo& info = peers[rank];
    if (info.is_wanted == 0)
      return std::string(contract::env::kGpuOperations) + " is not auto on " + label(rank);
    if (const std::string obstacle = info.obstacle.str(); !obstacle.empty())
      return label(rank) + ": " + obstacle;
    if (info.gpu.str() != first.gpu.str())
      return label(0) + " has " + first.gpu.str() + ", and " + label(rank) + " has " + info.gpu.str();
  }
  return "";
}

std::uint64_t process_token() {
  static const std::uint64_t token = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return token;
}

}  // namespace ddl::runtime
