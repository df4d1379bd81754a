// A process set from the view of one of its ranks: its members, their connections, and the calls that it makes.
//
// The world is a process set, joined through the launcher's bootstrap. Every other set is joined the same way through
// the set that it was made from (context/set_creation.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/fork_guard.h"
#include "runtime/src/named/engine.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Owns everything that joining the set made. The identity may be read from any thread; a CallScope may be made and
/// leave() called on any thread, but they refuse each other.
class ProcessSet {
 public:
  /// Joins: connects to the other ranks and begins to watch them. Collective. job outlives the set, and its first set
  /// is the world. job_ranks: the ranks in the job of the set's ranks. fault: for their calls. on_abort, limit: see
  /// Connections.
  static Result<std::unique_ptr<ProcessSet>> join(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
                                                  std::vector<int> job_ranks, FaultInjector fault,
                                                  Connections::OnAbort on_abort, const ConnectLimit& limit,
                                                  std::uint32_t first_sequence = 0);
  ~ProcessSet();
  ProcessSet(const ProcessSet&) = delete;
  ProcessSet& operator=(const ProcessSet&) = delete;

  int rank() const { return membership().rank; }
  int size() const { return membership().size; }
  const Membership& membership() const { return connections_->membership(); }
  const std::vector<int>& job_ranks() const { return connections_->job_ranks(); }
  Bootstrap& bootstrap() { return *bootstrap_; }
  Connections& connections() { return *connections_; }
  /// Of the ranks of this host.
  const Segment& segment() const { return connections_->segment(); }
  const CollectiveBackend& backend() const { return *backend_; }
  /// To raise an abort of the set, which any thread may do, and to read its reason.
  const AbortDomain& abort() const { return connections_->abort(); }

  /// One collective or transfer, inside a CallScope.
  Outcome collective(const Request& request, CallDeadline deadline);
  /// The small call that one without options would repeat: CollectiveBackend::repeated_by(). Inside a CallScope, in
  /// which repeat() makes it.
  const SmallCall* repeated_by(const Call& call, const std::uint64_t* counts, const void* send,
                               const void* recv) const {
    return backend_->repeated_by(call, counts, send, recv);
  }
  Outcome repeat(const SmallCall& small, const void* send, void* recv, CallDeadline deadline);
  /// Shows the launcher what this rank does in the set, which the program knows by this number. Before other threads
  /// use the set.
  void show(std::uint64_t id);
  /// How many sets have been made of this one; inside a CallScope.
  std::uint32_t count_made() { return ++made_; }
  const Member& self() const { return connections_->self(); }
  /// The limit for connections that are made inside a call with this deadline: they fail when the set is aborted.
  ConnectLimit limit_of(const CallDeadline& deadline) const {
    return {deadline.deadline, abort().doorbell()};
  }
  /// A point at which a test may kill or stop this rank; inside a CallScope.
  void pass(CallKind during, FaultPoint point) { connections_->fault().pass(during, point); }
  /// The last call that was begun; inside a CallScope.
  const Call& call() const { return connections_->channel().call(); }
  void wait_forwarded(Deadline deadline) { connections_->wait_forwarded(deadline); }

  /// The engine of named tensors, made at the first call.
  std::shared_ptr<Engine> engine();
  /// Of its engine, if there is one: Engine::open_tensor().
  std::optional<std::string> open_tensor() const;

  /// Engine::join() of the engine of this set. Until it returns, ordered calls of other threads are refused: the ranks
  /// that this one waits for may never make them.
  Outcome join(Engine& engine, int& last);

  /// Leaves the set: the others see that it has left cleanly. Unless it fails with DDL_ERROR_BUSY, nothing but the
  /// destructor may follow. The destructor leaves if this was not called.
  Outcome leave();
  /// No thread is inside a call.
  bool is_idle() const;

  /// True in a child that was forked without exec, which must neither use nor destroy this.
  bool is_in_forked_child() const { return fork_count() != fork_count_; }

 private:
  ProcessSet(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
             std::unique_ptr<Connections> connections, std::unique_ptr<CollectiveBackend> backend);

  friend class CallScope;
  /// Held by the thread that is inside a call. One locked instruction for each call; a std::mutex has two.
  class CallLock {
   public:
    bool try_lock() { return !is_held_.test_and_set(std::memory_order_acquire); }
    void unlock() { is_held_.clear(std::memory_order_release); }
    bool is_held() const { return is_held_.test(); }

   private:
    std::atomic_flag is_held_;
  };

  /// Makes a call of this number of bytes by run(), and shows and records it.
  template <class Run>
  Outcome recorded(const Call& call, std::size_t bytes, Run run);
  /// Whether a call may begin. has_lock: this thread holds the call lock.
  bool is_usable(bool has_lock) const {
    return has_lock && !is_left_ && !ended_by_ && joining_ == 0 && !is_in_forked_child();
  }
  /// Why not.
  Outcome check_usable(bool has_lock) const;
  /// A call has failed: remembers the last failure that ended the set.
  void note(const Failure& failure);

  JobResources& job_;
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<CollectiveBackend> backend_;
  std::uint64_t fork_count_;
  CallLock call_lock_;
  std::optional<std::string> ended_by_;  ///< guarded by call_lock_
  bool is_left_ = false;                 ///< guarded by call_lock_
  std::uint32_t made_ = 0;               ///< guarded by call_lock_
  std::atomic<int> joining_{0};          ///< the threads inside join()
  contract::SetRecord* shown_ = nullptr;
  CallTally tally_;  ///< guarded by call_lock_
  mutable std::mutex mutex_;
  std::shared_ptr<Engine> engine_;  ///< null until it is needed; guarded by mutex_
};

/// This thread is inside a call of a process set, of one collective or of several, unless the call is refused. While it
/// lives, it holds the set's call lock.
class CallScope {
 public:
  /// set outlives this. timeout_seconds 0 stands for the context's default.
  explicit CallScope(ProcessSet& set, double timeout_seconds = 0.0);
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  const CallDeadline& deadline() const { return deadline_; }
  /// Returns the outcome. Before that, a failure ends the set if it has to, and the partners on other hosts of this rank,
  /// which may now exit, learn the cause.
  Outcome finish();

  /// At first: a failure if the call is refused. Then set by the thread, to that of the call.
  Outcome outcome;

 private:
  ProcessSet& set_;
  std::unique_lock<ProcessSet::CallLock> lock_;
  bool is_refused_ = false;
  CallDeadline deadline_;
};

}  // namespace ddl::runtime
