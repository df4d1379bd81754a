// A process set from the view of one of its ranks: its members, their connections, and the executor of their calls.
//
// The world is a process set, joined through the launcher's bootstrap. Every other set is joined the same way through
// the set that it was made from (context/set_creation.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/src/backend/executor.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/named/engine.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// Owns everything that joining the set made. The identity may be read from any thread; run() and leave() may be
/// called from any thread, but refuse to run at the same time.
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
  const Membership& membership() const { return bootstrap_->membership(); }
  const std::vector<int>& job_ranks() const { return connections_->job_ranks(); }
  Bootstrap& bootstrap() { return *bootstrap_; }
  /// Of the ranks of this host.
  const Segment& segment() const { return connections_->segment(); }
  const CollectiveBackend& backend() const { return executor_->backend(); }
  /// To raise an abort of the set, which any thread may do, and to read its reason.
  const AbortDomain& abort() const { return connections_->abort(); }

  /// Runs calls(deadline), which returns an Outcome, while no other call of the set runs, and passes the outcome
  /// through finish() (see Executor). timeout_seconds 0 stands for the context's default.
  template <class Calls, class Finish>
  Outcome run(double timeout_seconds, Calls calls, Finish finish) {
    if (joining_ != 0) return has_joined();
    return executor_->run(timeout_seconds > 0 ? timeout_seconds : job_.settings.timeout_seconds, calls,
                          finish);
  }
  /// One collective or transfer, inside run().
  Outcome collective(const Request& request, CallDeadline deadline);
  /// Shows the launcher what this rank does in the set, which the program knows by this number. Before other threads
  /// use the set.
  void show(std::uint64_t id);
  /// How many sets have been made of this one; inside run().
  std::uint32_t count_made() { return ++made_; }
  const Member& self() const { return connections_->self(); }
  /// The limit for connections that are made inside a call with this deadline: they fail when the set is aborted.
  ConnectLimit limit_of(const CallDeadline& deadline) const {
    return {deadline.deadline, abort().doorbell()};
  }
  /// A point at which a test may kill or stop this rank; inside run().
  void pass(CallKind during, FaultPoint point) { connections_->fault().pass(during, point); }
  /// The last call that was begun; inside run().
  const Call& call() const { return connections_->channel().call(); }
  void wait_forwarded(Deadline deadline) { connections_->wait_forwarded(deadline); }

  /// The engine of named tensors, made at the first call. finish: see Engine.
  Result<std::shared_ptr<Engine>> engine(const Engine::Finish& finish);

  /// Engine::join() of the engine of this set. Until it returns, run() refuses the calls of other threads: the ranks
  /// that this one waits for may never make them.
  Outcome join(Engine& engine, int& last);

  /// Leaves the set: the others see a clean departure. Unless it fails with DDL_ERROR_BUSY, nothing but the
  /// destructor may follow. The destructor leaves if this was not called.
  Outcome leave();
  /// No thread is inside a call.
  bool is_idle() const;

  /// True in a child that was forked without exec, which must neither use nor destroy this.
  bool is_in_forked_child() const { return executor_->is_in_forked_child(); }

 private:
  ProcessSet(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
             std::unique_ptr<Connections> connections, std::unique_ptr<Executor> executor);

  static Outcome has_joined();

  JobResources& job_;
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<Executor> executor_;
  std::uint32_t made_ = 0;       ///< guarded by the executor's lock
  std::atomic<int> joining_{0};  ///< the threads inside join()
  contract::SetRecord* shown_ = nullptr;
  mutable std::mutex mutex_;
  std::shared_ptr<Engine> engine_;  ///< null until it is needed; guarded by mutex_
};

}  // namespace ddl::runtime
