// A communicator of NCCL: one GPU of each rank of a process set, and the stream on which this rank's part of the
// collectives runs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "runtime/src/backend/nccl/nccl_library.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// Functions but give_up() and async_error() are called by one thread at a time. The GPU is current on it.
class NcclCommunicator {
 public:
  /// Whether the caller has to give up waiting: the ranks are aborted, or its deadline has passed.
  using MustStop = std::function<bool()>;

  /// Joins the ranks that have the same id; all of them call it. library and device outlive this. kTimeout: must_stop()
  /// ended it.
  static Result<std::unique_ptr<NcclCommunicator>> join(const NcclLibrary& library, Device& device,
                                                        const nccl::UniqueId& id, int rank, int size,
                                                        const MustStop& must_stop);
  /// Leaves: waits for the other ranks, unless it was given up.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const NcclLibrary& library() const { return library_; }
  Device& device() const { return device_; }
  StreamHandle stream() const { return stream_->get(); }
  std::shared_ptr<const DeviceStream> shared_stream() const { return stream_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Puts calls of NCCL on the stream: calls(comm) returns the status of the first one that failed. They are one group.
  /// Returns when all of them are on the stream, and an event may be recorded. Fails with kClosed once it was given up.
  Status launch(const std::function<Status(nccl::Comm)>& calls, const MustStop& must_stop);

  /// Memory of the GPU for what is put on the stream next, until the next call of this.
  Result<std::byte*> scratch(std::size_t bytes);

  /// What has gone wrong on the way, on this rank or on another one; ok while a call is launched. From any thread.
  Status async_error();
  /// Ends the communicator on this rank: what is on the stream ends, with undefined results. All ranks have to do so. May
  /// take long, and waits for a launch that is under way. From any thread; does nothing after the first time.
  void give_up();

 private:
  NcclCommunicator(const NcclLibrary& library, Device& device, DeviceStream stream, int rank, int size)
      : library_(library),
        device_(device),
        stream_(std::make_shared<const DeviceStream>(std::move(stream))),
        rank_(rank),
        size_(size) {}
  /// Waits until NCCL has executed what it began in the background. Under mutex_.
  Status settle(const MustStop& must_stop);

  const NcclLibrary& library_;
  Device& device_;
  std::shared_ptr<const DeviceStream> stream_;
  int rank_;
  int size_;
  std::mutex mutex_;  ///< held inside functions of NCCL
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  nccl::Comm comm_ = nullptr;  ///< null once it was given up; guarded by mutex_
};

}  // namespace ddl::runtime
