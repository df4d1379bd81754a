// Buffers and events on a GPU that several ranks of a host share: what a rank tells the others of its own, and where it
// finds theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/src/backend/cpu_exchange.h"
#include "runtime/src/backend/gpu_peer_info.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

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
  /// peers: of all ranks. device outlives this.
  IpcMemory(Device& device, int rank, std::span<const IpcPeerInfo> peers);
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

  bool is_in_process(int rank) const { return is_in_process_[rank] != 0; }
  void close(int rank, OfRank::iterator entry);

  Device& device_;
  std::vector<char> is_in_process_;  ///< by rank
  std::vector<OfRank> opened_;       ///< by rank
  std::uint64_t uses_ = 0;
  std::map<std::uint64_t, IpcHandle> handles_;  ///< of this rank's allocations, by id
};

/// The buffers of all ranks in a call: of each rank those of its parts, send and recv in turn.
class IpcBuffers {
 public:
  /// What this rank has. rank, size: of the process set.
  IpcBuffers(const Request& request, int rank, int size);

  std::size_t parts() const { return parts_; }
  std::uint64_t count(std::size_t part) const { return own_[part].count; }

  /// Tells all ranks what each has.
  Outcome gather(CpuExchange& exchange, IpcMemory& memory, CallDeadline deadline);

  /// Calls use(rank, buffer) for each buffer of each rank, until it returns false; the same on all ranks.
  template <class Use>
  bool for_each(Use use) const {
    for (int rank = 0; rank < size_; ++rank) {
      for (std::size_t i = 0; i < 2 * parts_; ++i) {
        if (!use(rank, at(rank, i))) return false;
      }
    }
    return true;
  }
  bool are_in_place(int rank) const {
    const IpcBuffer &send = at(rank, 0), &recv = at(rank, 1);
    return send.kind == recv.kind && send.allocation.id == recv.allocation.id && send.offset == recv.offset;
  }

  std::byte* send(IpcMemory& memory, int rank, std::size_t part) const {
    return memory.find(rank, at(rank, 2 * part));
  }
  std::byte* recv(IpcMemory& memory, int rank, std::size_t part) const {
    return memory.find(rank, at(rank, 2 * part + 1));
  }

 private:
  const IpcBuffer& at(int rank, std::size_t index) const { return all_[rank * 2 * parts_ + index]; }

  std::size_t parts_;
  int size_;
  std::vector<Part> own_;
  std::vector<IpcBuffer> all_;
};

}  // namespace ddl::runtime
