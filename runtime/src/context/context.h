// One rank's membership in a job, which a ddl_context stands for: the world, and the process sets made from it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "contract/elastic.h"
#include "contract/rank_process.h"
#include "runtime/src/context/process_set.h"
#include "runtime/src/context/recording.h"
#include "runtime/src/context/set_creation.h"
#include "runtime/src/context/store_exchange.h"

namespace ddl::runtime {

class MessageEngine;

/// Owns everything that joining the job made. All functions may be called from any thread. leave() refuses to run
/// beside one that has begun before, but for the identity (rank(), size() and the like); none may begin while leave()
/// runs.
class Context {
 public:
  /// Joins: connects to the other ranks and begins to watch them. Collective. mpi: for collectives by MPI; null: that
  /// of the site.
  static Result<std::unique_ptr<Context>> join(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap,
                                               TransportMaker transports, FaultInjector fault,
                                               std::uint32_t first_sequence = 0,
                                               std::shared_ptr<MpiWorld> mpi = nullptr);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int rank() const { return world_->rank(); }
  int size() const { return world_->size(); }
  int local_rank() const { return world_->membership().local_rank(); }
  int local_size() const { return std::ssize(layout().local()); }
  int cross_rank() const { return layout().cross_rank(local_rank()); }
  int cross_size() const { return layout().cross_size(local_rank()); }
  const char* bootstrap_name() const { return world_->bootstrap().name(); }
  /// Of an elastic job, from 0; -1: it is none.
  int generation() const;
  /// Of an elastic job: what all ranks are to come together for.
  contract::JobChange pending_change() const {
    return job_.record ? job_.record->pending_change() : contract::JobChange::kNone;
  }
  /// The name of a tensor of any set that this rank has submitted, and that is not complete; nullopt: there is none.
  std::optional<std::string> open_tensor() const;
  /// Tells the launcher of an elastic job that this rank's work is done. Not beside another call of this function.
  void finish() { world_->bootstrap().notify_launcher(contract::kFinishedEvent); }
  /// Null unless MPI executes the collectives.
  const std::shared_ptr<MpiWorld>& mpi() const { return job_.mpi; }
  contract::CpuOperations operations() const { return world_->backend().operations(); }

  /// A process set by its number, kept alive by the returned pointer; null if this rank has no set of that number.
  std::shared_ptr<ProcessSet> set(std::uint64_t id) const;
  /// One collective of a process set.
  Outcome run(ProcessSet& set, const Request& request, double timeout_seconds);

  /// Makes a collective of the world without options, if it repeats a small one. Returns whether it did; if not, the call
  /// is to be checked and run. counts: of all ranks, or null.
  bool repeat(const Call& call, const std::uint64_t* counts, const void* send, void* recv, Outcome& outcome);

  /// Makes a set of the parent's ranks in the list, or several by split. Collective over the parent. id becomes the
  /// number of the set that this rank is in, or DDL_NO_PROCESS_SET.
  Outcome make_set(ProcessSet& parent, std::span<const std::int32_t> list, std::uint64_t& id);
  Outcome split_set(ProcessSet& parent, Coloring own, std::uint64_t& id);
  /// Makes a set of these ranks of the world, of which this one is one, while no others take part. Collective over
  /// them.
  Outcome make_set_by_members(const std::vector<int>& members, const std::string& name,
                              const ddl_store& store, std::uint64_t& id);
  /// Leaves a set and forgets it.
  Outcome free_set(std::uint64_t id);

  /// The default of every call.
  double timeout_seconds() const { return job_.settings.timeout_seconds; }
  const std::shared_ptr<MessageEngine>& messages() const { return messages_; }

  Outcome allocate(std::uint64_t bytes, void*& memory);
  Outcome free_memory(void* memory);

  /// Where this rank's events go; null: nowhere.
  EventLog* events() { return job_.log(); }

  /// A timeline of all ranks is recorded, and rank 0 writes it to this file when it is stopped, or when the ranks
  /// leave. Collective; path and size of rank 0 count.
  Outcome start_timeline(const std::string& path, std::uint64_t max_bytes);
  Outcome stop_timeline();

  /// What ddl_abort() does: every call of every rank fails with an error that says which rank has aborted the job and
  /// why, the launcher is asked to end the job, and then this process exits with the code, if ends_process. Calls of
  /// this rank that fail meanwhile, leave() and a second abort() do not return before that. From any thread.
  void abort(int code, const std::string& text, bool ends_process);

  /// Leaves the job: the others see that it has left cleanly. Unless it fails with DDL_ERROR_BUSY, nothing but the
  /// destructor may follow. The destructor leaves if this was not called.
  Outcome leave();

  /// True in a child that was forked without exec, which must neither use nor destroy this.
  bool is_in_forked_child() const { return world_->is_in_forked_child(); }

 private:
  Context(const Settings& settings, TransportMaker transports, FaultInjector fault);

  const HostLayout& layout() const { return world_->membership().layout; }
  /// Joins the set of these ranks of the parent; together with all other ranks of the parent, inside one of its
  /// calls.
  Outcome join_set(ProcessSet& parent, const std::vector<int>& members, CallDeadline deadline,
                   std::uint64_t& id);
  /// What a member does of it: joins the others.
  Result<std::shared_ptr<ProcessSet>> join_members(const ProcessSet& parent, const std::vector<int>& members,
                                                   std::uint64_t number, GatherTexts gather,
                                                   CallDeadline deadline);
  /// Like join_set(), through a store of the program.
  Outcome join_by_store(StoreExchange& exchange, const SetMaking& making, std::uint64_t& id);
  /// From now on the program knows the set, by the returned number.
  std::uint64_t keep(std::shared_ptr<ProcessSet> set);
  std::vector<std::shared_ptr<ProcessSet>> sets() const;
  /// Rank 0 writes the timeline that was not stopped.
  void end_recording();
  void write_recording();
  /// The world has been aborted: aborts all other sets too.
  void abort_sets(const AbortNotice& notice) const;
  /// Aborts all sets, and waits up to kForwarding until the partners on other hosts have been notified.
  void spread(const AbortNotice& notice) const;
  enum class AbortState { kNone, kRunning, kDone };
  /// If a thread of this rank is in abort(), waits until it has done its work, so that the process does not exit
  /// before.
  void await_own_abort() const;
  /// JobResources::on_failure. If the set is aborted, the program may end now, and with it the connections of all sets. So
  /// this returns only when the ranks at their other ends have been notified of the true cause.
  void await_notified(const AbortDomain* set) const;
  /// Joins the set of the ranks with the own color; like join_set().
  Outcome join_color(ProcessSet& parent, Coloring own, CallDeadline deadline, std::uint64_t& id);

  JobResources job_;
  std::shared_ptr<ProcessSet> world_;
  std::shared_ptr<MessageEngine> messages_;  ///< handles that the program still has keep it, too
  std::optional<Recording> recording_;       ///< guarded by the world's lock
  /// The launcher has asked for an event after the first collective; guarded by the world's lock.
  bool reports_first_ = false;
  std::atomic<AbortState> own_abort_{AbortState::kNone};
  /// Threads inside functions that hold no set's call lock to their end.
  std::atomic<int> users_{0};
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<ProcessSet>> sets_;  ///< without the world; guarded by mutex_
  std::uint64_t last_id_ = 0;                                  ///< guarded by mutex_
  /// Sets that were made by their members alone, by name.
  struct NamedSet {
    std::uint64_t made = 0;  ///< how often this rank has begun to make one
    bool is_being_made = false;
    std::uint64_t id = DDL_NO_PROCESS_SET;  ///< of the last one
  };
  std::map<std::string, NamedSet> named_sets_;  ///< guarded by mutex_
};

}  // namespace ddl::runtime
