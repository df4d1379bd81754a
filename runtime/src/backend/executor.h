// Runs the calls of a process set on its backend, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/common/fork_guard.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Functions may be called from any thread; a call that starts while another one runs fails with DDL_ERROR_BUSY.
class Executor {
 public:
  /// connections outlives this.
  Executor(Connections& connections, std::unique_ptr<CollectiveBackend> backend)
      : connections_(connections), backend_(std::move(backend)), fork_count_(fork_count()) {}

  CollectiveBackend& backend() const { return *backend_; }

  /// Runs calls(deadline), which returns an Outcome, under the call lock. finish() receives a failure, also of a call
  /// that is refused, and returns it; the lock is held until it has returned, unless another thread holds it
  /// (DDL_ERROR_BUSY).
  template <class Calls, class Finish>
  Outcome run(double timeout_seconds, Calls calls, Finish finish) {
    const CallLock lock(busy_);
    if (auto allowed = check_usable(lock); !allowed) return finish(std::move(allowed));
    Outcome outcome = calls(CallDeadline::after(timeout_seconds));
    if (outcome) return outcome;
    return finish(note(std::move(outcome)));
  }
  /// One collective or transfer, inside run().
  Outcome collective(const Request& request, CallDeadline deadline) {
    return backend_->run(request, deadline);
  }
  /// No thread is inside a call.
  bool is_idle() const { return !busy_.test(); }

  /// Refuses further calls, then runs leave(), once. The call lock is held until that has returned: a thread that
  /// closes meanwhile gets DDL_ERROR_BUSY. Otherwise fails as leave() does.
  template <class Leave>
  Outcome close(Leave leave) {
    const CallLock lock(busy_);
    if (!lock.held()) return busy();
    if (std::exchange(is_closed_, true)) return {};
    return leave();
  }
  /// After close(), when this rank has left the set: the backend does not communicate any more.
  void destroy_backend() { backend_.reset(); }

  /// True in a child that was forked without exec, which must neither use nor destroy this.
  bool is_in_forked_child() const { return fork_count() != fork_count_; }

 private:
  /// Held during a call, unless another one holds it.
  class CallLock {
   public:
    explicit CallLock(std::atomic_flag& busy)
        : busy_(busy), held_(!busy.test_and_set(std::memory_order_acquire)) {}
    ~CallLock() {
      if (held_) busy_.clear(std::memory_order_release);
    }
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;
    bool held() const { return held_; }

   private:
    std::atomic_flag& busy_;
    bool held_;
  };

  static Outcome busy();
  Outcome check_usable(const CallLock& lock) const;
  /// Remembers the first failure that ended the set.
  Outcome note(Outcome outcome);

  Connections& connections_;
  std::unique_ptr<CollectiveBackend> backend_;
  std::uint64_t fork_count_;
  std::atomic_flag busy_;
  std::optional<std::string> ended_by_;  ///< guarded by busy_
  bool is_closed_ = false;               ///< guarded by busy_
};

}  // namespace ddl::runtime
