#include "runtime/src/backend/nccl/nccl_offer.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "contract/environment.h"
#include "runtime/src/backend/nccl/nccl_library.h"

namespace ddl::runtime {
namespace {

Status fill(NcclOffer& offer, Device& device) {
  DeviceRuntime& runtime = device.runtime();
  auto library = NcclLibrary::load(runtime.collectives_library());
  if (!library) return fail(std::move(library.error()));
  auto uuid = runtime.uuid(device.ordinal());
  if (!uuid) return fail(std::move(uuid.error()));
  // The environment beats what a communicator is made with.
  if (const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
      blocking != nullptr && std::string_view(blocking) == "1") {
    return fail(ErrorCode::kUnavailable,
                "NCCL_COMM_BLOCKING=1 makes communicators that cannot be given up when a rank dies");
  }
  const CurrentDevice current(device);
  DDL_TRY(current.status());
  offer.has_kernels = device.prepare_kernels(GpuProgram::kForNccl) ? 1 : 0;
  offer.library = TextField<32>::of((*library)->file());
  offer.version = (*library)->version();
  offer.gpu = TextField<64>::of(*uuid);
  return {};
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

bool is_too_early(std::span<const NcclOffer> offers) {
  return std::any_of(offers.begin(), offers.end(),
                     [](const NcclOffer& offer) { return offer.has_device == 0; });
}

std::string obstacle_of(std::span<const NcclOffer> offers, std::span<const int> job_ranks) {
  const auto label = [&](std::size_t rank) {
    return Member{job_ranks[rank], offers[rank].host.str(), 0}.label();
  };
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

}  // namespace ddl::runtime
