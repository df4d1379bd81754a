// One process set as one of its ranks sees it: shared memory, connections, a channel, and the order of calls on it.
//
// The world is one, joined through the launcher's bootstrap. Every other set is joined the same way through the set that it
// comes from (context/set_creation.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/collective/cluster.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/context/fork_guard.h"
#include "runtime/src/context/pairs.h"
#include "runtime/src/context/watcher.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/wire/control_links.h"
#include "runtime/src/wire/link_transport.h"

namespace ddl::runtime {

/// What all sets of a context have in common. Everything that it refers to outlives them.
struct SetSurroundings {
  const Settings& settings;
  const TransportMaker& transports;
  Watcher& watcher;
  FaultInjector& fault;  ///< of what happens while ranks are connected
  /// Of the job's ranks on this host; null for the set whose memory it is part of.
  const SharedHeap* heap;
  /// The MPI of the job, which the first set joins if it is to carry out the collectives.
  std::shared_ptr<MpiWorld>& mpi;
  /// Of the processes of its ranks on this host: one set of a context does, and tells the others.
  bool watches_deaths;
};

/// Owns everything that joining the set made. The identity may be read from any thread; run() and leave() may be called
/// from any thread, but refuse to run at the same time.
class ProcessSet {
 public:
  /// Told, on any thread, when the set has been aborted. Returns at once.
  using OnAbort = std::function<void(const AbortNotice&)>;

  /// Joins: connects to the other ranks and begins to watch them. Collective. job_ranks: who the set's ranks are in the
  /// job. limit: until when the others are waited for.
  static Result<std::unique_ptr<ProcessSet>> join(SetSurroundings around,
                                                  std::unique_ptr<Bootstrap> bootstrap,
                                                  std::vector<int> job_ranks, FaultInjector fault,
                                                  OnAbort on_abort, const ConnectLimit& limit,
                                                  std::uint32_t first_sequence = 0);
  ~ProcessSet();
  ProcessSet(const ProcessSet&) = delete;
  ProcessSet& operator=(const ProcessSet&) = delete;

  int rank() const { return membership().rank; }
  int size() const { return membership().size; }
  const Membership& membership() const { return bootstrap_->membership(); }
  const std::vector<int>& job_ranks() const { return job_ranks_; }
  Bootstrap& bootstrap() { return *bootstrap_; }
  const CollectiveBackend& backend() const { return *backend_; }

  /// Runs calls under the try-lock. calls(deadline) returns an Outcome. timeout_seconds 0 stands for the context's default.
  template <class Calls>
  Outcome run(double timeout_seconds, Calls calls) {
    const CallLock lock(busy_);
    if (auto allowed = check_usable(lock); !allowed) return allowed;
    const double seconds = timeout_seconds > 0 ? timeout_seconds : around_.settings.timeout_seconds;
    return note(calls(CallDeadline::after(seconds)));
  }
  /// One collective, inside run().
  Outcome collective(const Request& request, CallDeadline deadline) {
    return backend_->run(request, deadline);
  }
  /// How many sets have been made of this one; inside run().
  std::uint32_t count_made() { return ++made_; }

  const Member& self() const { return group_.members[static_cast<std::size_t>(group_.index)]; }

  /// Something has happened elsewhere after which no call can succeed: aborts the set. From any thread.
  void tell(const AbortNotice& notice) const { abort_.raise_told(group_.index, notice); }
  bool is_aborted() const { return abort_.is_raised(); }
  /// Of connections that are made inside a call with this deadline: its ranks are aborted if one of them dies.
  ConnectLimit limit_of(const CallDeadline& deadline) const {
    return {deadline.deadline, group_.doorbell.get()};
  }
  /// Why; it is aborted.
  AbortNotice notice() const { return abort_.notice(); }
  /// A moment at which a test may kill or stop this rank; inside run().
  void pass(CallKind during, FaultPoint point) { fault_.pass(during, point); }
  /// The last call that was begun; inside run().
  const Call& call() const { return channel_.call(); }
  /// Of a set that has been aborted: waits until the partners on other hosts, those of its pairs as well, have been told,
  /// or the deadline has passed. Not on the watching thread.
  void wait_forwarded(Deadline deadline);

  /// The shared heap of the ranks of this host, if this set's memory holds it.
  SharedHeap& heap() { return heap_; }

  /// Leaves the set: the others see a clean departure. Unless it fails with DDL_ERROR_BUSY, nothing but the destructor
  /// may follow. The destructor leaves if this was not called.
  Outcome leave();
  /// Nobody is inside a call.
  bool is_idle() const { return !busy_.test(); }

  /// True in a child that was forked without exec, which must neither use nor destroy this.
  bool is_in_forked_child() const { return fork_count() != fork_count_; }

 private:
  /// Holds the set for one call, if nobody else does.
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

  ProcessSet(SetSurroundings around, std::unique_ptr<Bootstrap> bootstrap, std::vector<int> job_ranks,
             SharedGroup group, FaultInjector fault, OnAbort on_abort);

  /// Connects this rank to its partners on other hosts, if it has a lane.
  Status connect_hosts(std::unique_ptr<LinkTransport> transport, WaitPolicy policy,
                       const ConnectLimit& limit);
  /// The same for the hosts that it has not been connected with at first.
  Outcome connect_mesh(Lane& lane);
  Result<std::vector<PeerLink>> connect_to(const std::vector<int>& hosts, const ConnectLimit& limit);
  /// Lets those know that this rank is connected with already.
  Error give_up_connecting(Error why);
  std::vector<PeerLink> standing_links();
  /// A forked child closes what connects this rank.
  void guard_descriptors();
  void make_pairs();
  /// What carries out the collectives, once the ranks are connected.
  Status make_backend();
  Status start_watching();
  std::vector<Watch> watches_of_links(std::size_t first);
  void tell_links(const std::vector<PeerLink>& links) const;
  Outcome check_usable(const CallLock& lock) const;
  /// Remembers the first failure that ended the set.
  Outcome note(Outcome outcome);

  SetSurroundings around_;
  std::unique_ptr<Bootstrap> bootstrap_;
  std::vector<int> job_ranks_;
  SharedGroup group_;
  FaultInjector fault_;
  OnAbort on_abort_;
  GroupAbort abort_;
  SharedHeap heap_;
  Channel channel_;
  std::unique_ptr<LinkTransport> link_transport_;  ///< null on one host
  std::size_t slot_bytes_;
  std::unique_ptr<ControlLinks> control_;  ///< null without a lane
  std::unique_ptr<Cluster> cluster_;       ///< null on one host
  std::unique_ptr<Pairs> pairs_;
  std::unique_ptr<CollectiveBackend> backend_;
  std::unique_ptr<ClosedInForkedChild> closed_in_child_;
  std::uint64_t fork_count_;
  Watcher::Ticket ticket_ = 0;
  mutable std::atomic_flag busy_;
  std::uint32_t made_ = 0;               ///< guarded by busy_
  std::optional<std::string> ended_by_;  ///< guarded by busy_
  bool left_ = false;                    ///< guarded by busy_
};

}  // namespace ddl::runtime
