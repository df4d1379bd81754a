// Buffers and events on a GPU that several ranks of a host share: what a rank tells the others of its own, and where it
// finds theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/src/common/member.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// What a rank tells of itself. Plain data: it travels between ranks.
struct IpcOffer {
  std::uint64_t process = 0;  ///< different for each process of all hosts, as far as chance goes
  std::uint8_t has_device = 0;
  std::uint8_t is_wanted = 0;
  TextField<64> gpu;        ///< its UUID
  TextField<200> obstacle;  ///< why its memory cannot be shared
  HostField host;
  // Its events: for other processes, and in its own.
  IpcHandle ready{}, done{};
  std::uint64_t own_ready = 0, own_done = 0;
};

/// Some rank has had no memory of a GPU yet, and may have it in a later call.
bool is_too_early(std::span<const IpcOffer> offers);
/// Why ranks of one host cannot use each other's memory, naming the ranks; "": they can. job_ranks: the rank in the job of
/// each.
std::string obstacle_of(std::span<const IpcOffer> offers, std::span<const int> job_ranks);
/// Of this process.
std::uint64_t process_token();

/// An event that other processes can open. Theirs may use it after its owner has no more need for it, so it is kept for
/// the process's life, and used again.
class SharedEvent {
 public:
  static Result<SharedEvent> take(Device& device);
  ~SharedEvent();
  SharedEvent(SharedEvent&& other) noexcept;
  SharedEvent& operator=(SharedEvent&& other) noexcept;

  EventHandle get() const { return handle_; }

 private:
  SharedEvent(Device& device, EventHandle handle) : device_(&device), handle_(handle) {}

  Device* device_;
  EventHandle handle_;
};

/// What a rank tells of a buffer that it uses in a call. Plain data.
struct IpcBuffer {
  enum class Kind : std::uint64_t {
    kUnused,   ///< the rank has no such buffer in this call
    kShared,   ///< others can open it
    kPrivate,  ///< they cannot
  };
  Kind kind = Kind::kUnused;
  DeviceAllocation allocation;
  std::uint64_t offset = 0;  ///< of the buffer in the allocation
  IpcHandle handle{};
};

/// A rank's allocations that are kept open. A program that gives new ones all the time has the oldest closed.
inline constexpr std::size_t kMostOpened = 1024;

/// This rank's buffers, and those of the other ranks, on one GPU. Not thread-safe. The GPU is current.
class IpcMemory {
 public:
  /// offers: of all ranks. device outlives this.
  IpcMemory(Device& device, int rank, std::span<const IpcOffer> offers);
  /// Nothing on the GPU uses the others' buffers any more.
  ~IpcMemory();
  IpcMemory(const IpcMemory&) = delete;
  IpcMemory& operator=(const IpcMemory&) = delete;

  /// For a buffer of this rank; null: it uses none.
  IpcBuffer describe(const void* address);

  // All ranks are told of the same buffers in the same order, so these give all of them the same answers.

  /// Whether a buffer lies in an allocation of this rank's that has not been opened.
  bool is_new(int rank, const IpcBuffer& buffer) const;
  /// Whether another allocation has to be closed for it, if so many of the rank's are opened now.
  bool must_close(int rank, const IpcBuffer& buffer, std::size_t opened_now) const;
  /// Opens it. If it must_close(), nothing on the GPU uses the others' buffers now.
  Status open(int rank, const IpcBuffer& buffer);
  /// After it failed on some rank.
  void refuse(int rank, const IpcBuffer& buffer);
  /// Null: it was refused.
  std::byte* find(int rank, const IpcBuffer& buffer);

 private:
  struct Opened {
    DeviceAllocation allocation;
    std::byte* begin = nullptr;  ///< in this process; null: refused
    std::uint64_t last_use = 0;
  };
  /// A rank's open allocations by id.
  using OfRank = std::map<std::uint64_t, Opened>;

  bool is_in_process(int rank) const { return is_in_process_[static_cast<std::size_t>(rank)] != 0; }
  void close(int rank, OfRank::iterator entry);

  Device& device_;
  std::vector<char> is_in_process_;  ///< by rank
  std::vector<OfRank> opened_;       ///< by rank
  std::uint64_t uses_ = 0;
  std::map<std::uint64_t, IpcHandle> handles_;  ///< of this rank's allocations, by id
};

}  // namespace ddl::runtime
