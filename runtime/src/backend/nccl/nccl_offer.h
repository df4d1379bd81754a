// What each rank of a process set has for a communicator, and whether all of them together can make one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "contract/operations.h"
#include "runtime/src/common/member.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// Of one rank. Plain data: it travels between ranks.
struct NcclOffer {
  std::int32_t version = 0;  ///< of the library
  std::uint8_t has_device = 0;
  std::uint8_t has_kernels = 0;  ///< libddl's own
  contract::GpuOperations operations = contract::GpuOperations::kAuto;
  TextField<32> library;    ///< "libnccl.so.2"; "": it cannot be used
  TextField<64> gpu;        ///< its UUID
  TextField<200> obstacle;  ///< why it cannot be used
  HostField host;

  /// For buffers on this GPU; null: this rank has none. Loads the library, and compiles the kernels.
  static NcclOffer of(Device* device, contract::GpuOperations operations, const std::string& host);
};

/// Some rank has had no memory of a GPU yet, and may have it in a later call.
bool is_too_early(std::span<const NcclOffer> offers);
/// Why the ranks cannot use NCCL together, naming the ranks; "": they can. job_ranks: the rank in the job of each.
std::string obstacle_of(std::span<const NcclOffer> offers, std::span<const int> job_ranks);

}  // namespace ddl::runtime
