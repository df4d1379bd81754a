// Looks after the calls that a process set has put on a GPU while the program goes on: whether all ranks have made the
// same call, whether it ends in time, and whether a rank is lost meanwhile.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/fd.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/device/device.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Has a thread of its own. Functions are called by one thread at a time.
class CallWatch {
 public:
  /// What the thread does; nothing, unless it is given.
  struct Actions {
    /// Compares the calls of all ranks. Uses the set's connections: nothing else may do so until settle() has returned.
    std::function<Outcome(const Call&, CallDeadline)> compare = [](const Call&, CallDeadline) {
      return Outcome();
    };
    /// What went wrong on the GPU, or on the way between GPUs.
    std::function<Status()> check_health = [] { return Status(); };
    /// Ends what is on the GPU. May take long.
    std::function<void()> give_up = [] {};
  };

  /// device and connections outlive this. call: in which this happens.
  static Result<std::unique_ptr<CallWatch>> start(Device& device, Connections& connections, const Call& call,
                                                  Actions actions);
  /// Only after end().
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// A call whose ranks have compared it, which has been put on the GPU, and the event of its end.
  void add(const Call& call, CallDeadline deadline, DeviceEvent end);
  /// A call that has to be compared. Before it is put on the GPU, since that may wait for other ranks, which may wait for
  /// the comparison; afterwards follows the event of its end.
  void add_uncompared(const Call& call, CallDeadline deadline);
  void set_end(DeviceEvent end);
  /// Waits until all calls have been compared. Fails as a call has failed: then no further call may be made.
  Outcome settle();
  /// Waits until all calls have ended, or have been given up. False: giving up takes too long. Then neither this nor what
  /// give_up() uses may be destroyed.
  bool end();
  /// The calls that have not been compared.
  std::size_t uncompared() const;
  /// The same without waiting for calls.
  Outcome outcome();
  /// After the ranks have been aborted: the failure, when nothing is on the GPU any more.
  Outcome failed_outcome();
  /// An event that is not used any more, or a new one.
  Result<DeviceEvent> make_event();

 private:
  struct Watched {
    Call call;
    CallDeadline deadline;
    std::optional<DeviceEvent> end;  ///< nullopt: it is being put on the GPU
  };

  CallWatch(Device& device, Connections& connections, const Call& call, Actions actions, UniqueFd doorbell)
      : device_(device),
        connections_(connections),
        actions_(std::move(actions)),
        doorbell_(std::move(doorbell)),
        last_(call) {}
  Outcome outcome(std::unique_lock<std::mutex>& lock);
  void run();
  void watch(std::unique_lock<std::mutex>& lock);
  /// Compares the oldest call that has not been compared. Without the lock while it does.
  void compare_next(std::unique_lock<std::mutex>& lock);
  /// Forgets the calls that have ended. Fails if one of them did not end well, or not in time.
  Outcome look_at_running();
  void give_up_all(std::unique_lock<std::mutex>& lock, Failure failure);
  void ring() const;
  void sleep(bool is_waiting_for_gpu) const;

  Device& device_;
  Connections& connections_;
  Actions actions_;
  UniqueFd doorbell_;  ///< an eventfd: there is something for the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<Watched> to_compare_;
  std::deque<Watched> running_;
  std::deque<DeviceEvent> unused_events_;
  Call last_;  ///< that was added; first the one in which the watch began
  std::optional<Failure> failure_;
  bool ends_ = false;
  bool is_given_up_ = false;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace ddl::runtime
