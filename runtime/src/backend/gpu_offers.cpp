#include "runtime/src/backend/gpu_offers.h"

#include <cstdlib>
#include <map>
#include <random>
#include <string_view>

#include "contract/environment.h"
#include "runtime/src/backend/nccl/nccl_library.h"

namespace ddl::runtime {
namespace {

Status fill(NcclOffer& offer, Device& device) {
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
  offer.has_kernels = device.prepare_kernels(GpuProgram::kForNccl) ? 1 : 0;
  offer.library = TextField<32>::of(library->file());
  offer.version = library->version();
  if (offer.version >= nccl::kOldestWithFloat8) offer.float8 = device.float8_formats();
  offer.gpu = TextField<64>::of(uuid);
  return {};
}

std::string label_of(const auto& offer, int job_rank) {
  return Member{job_rank, offer.host.str(), 0}.label();
}

}  // namespace

NcclOffer NcclOffer::of(Device* device, contract::GpuOperations operations, const std::string& host) {
  NcclOffer offer;
  offer.operations = operations;
  offer.host = HostField::of(host);
  if (device == nullptr) return offer;
  offer.has_device = 1;
  if (operations == contract::GpuOperations::kStaged) return offer;
  if (auto filled = fill(offer, *device); !filled)
    offer.obstacle = TextField<200>::of(filled.error().message());
  return offer;
}

std::string obstacle_of(std::span<const NcclOffer> offers, std::span<const int> job_ranks) {
  const auto label = [&](std::size_t rank) { return label_of(offers[rank], job_ranks[rank]); };
  const NcclOffer& first = offers.front();
  std::map<std::string, std::size_t> ranks_by_gpu;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const NcclOffer& offer = offers[rank];
    if (offer.operations == contract::GpuOperations::kStaged)
      return std::string(contract::env::kGpuOperations) + "=staged on " + label(rank);
    if (offer.library.str().empty()) return label(rank) + ": " + offer.obstacle.str();
    if (offer.library.str() != first.library.str()) {
      return label(0) + " has " + first.library.str() + ", and " + label(rank) + " has " +
             offer.library.str();
    }
    if (offer.version != first.version) {
      return label(0) + " has version " + nccl_version_text(first.version) + " of " + first.library.str() +
             ", and " + label(rank) + " has " + nccl_version_text(offer.version);
    }
    const auto [known, is_first] = ranks_by_gpu.emplace(offer.gpu.str(), rank);
    if (!is_first) return label(known->second) + " and " + label(rank) + " share " + offer.gpu.str();
  }
  return "";
}

std::string obstacle_of(std::span<const IpcOffer> offers, std::span<const int> job_ranks) {
  const auto label = [&](std::size_t rank) { return label_of(offers[rank], job_ranks[rank]); };
  if (offers.size() > CombinationArguments::kMost)
    return "more than " + std::to_string(CombinationArguments::kMost) + " ranks";
  const IpcOffer& first = offers.front();
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const IpcOffer& offer = offers[rank];
    if (offer.is_wanted == 0)
      return std::string(contract::env::kGpuOperations) + " is not auto on " + label(rank);
    if (const std::string obstacle = offer.obstacle.str(); !obstacle.empty())
      return label(rank) + ": " + obstacle;
    if (offer.gpu.str() != first.gpu.str())
      return label(0) + " has " + first.gpu.str() + ", and " + label(rank) + " has " + offer.gpu.str();
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
