// What each rank of a process set has on its GPU, and whether all of them together can use it: NCCL, or each other's memory.
// Plain data, which travel between ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "contract/operations.h"
#include "runtime/src/common/member.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// For NCCL or RCCL.
struct NcclPeerInfo {
  std::int32_t version = 0;  ///< of the library
  std::uint8_t has_device = 0;
  std::uint8_t has_kernels = 0;                 ///< libddl's own
  Float8Formats float8 = Float8Formats::kNone;  ///< those that the library combines
  contract::GpuOperations operations = contract::GpuOperations::kAuto;
  TextField<32> library;    ///< "libnccl.so.2"; "": it cannot be used
  TextField<64> gpu;        ///< its UUID
  TextField<200> obstacle;  ///< why it cannot be used
  HostField host;

  /// For buffers on this GPU; null: this rank has none. Loads the library, and compiles the kernels.
  static NcclPeerInfo of(Device* device, contract::GpuOperations operations, const std::string& host);
};

/// For the memory of a GPU that the ranks of a host share.
struct IpcPeerInfo {
  std::uint64_t process = 0;  ///< as process_token() gives it
  std::uint8_t has_device = 0;
  std::uint8_t is_wanted = 0;
  TextField<64> gpu;        ///< its UUID
  TextField<200> obstacle;  ///< why its memory cannot be shared
  HostField host;
  // Its events: for other processes, and in its own.
  IpcHandle ready{}, done{};
  std::uint64_t own_ready = 0, own_done = 0;
};

/// Of this process: different for each process of all hosts, as far as chance goes.
std::uint64_t process_token();

/// Some rank has had no memory of a GPU yet, and may have it in a later call.
bool is_too_early(const auto& peers) {
  return std::ranges::any_of(peers, [](const auto& info) { return info.has_device == 0; });
}

/// Why the ranks cannot use NCCL together, or ranks of one host each other's memory, naming the ranks; "": they can.
/// job_ranks: the rank in the job of each.
std::string obstacle_of(std::span<const NcclPeerInfo> peers, std::span<const int> job_ranks);
std::string obstacle_of(std::span<const IpcPeerInfo> peers, std::span<const int> job_ranks);

}  // namespace ddl::runtime
