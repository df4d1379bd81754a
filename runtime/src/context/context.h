// One rank's membership in a job: what a ddl_context stands for.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/channel/channel.h"
#include "runtime/src/cluster/cluster.h"
#include "runtime/src/context/fork_guard.h"
#include "runtime/src/context/ordered_tier.h"
#include "runtime/src/context/watcher.h"
#include "runtime/src/failure.h"
#include "runtime/src/fault.h"
#include "runtime/src/link/control_links.h"
#include "runtime/src/settings.h"
#include "runtime/src/transport/link_transport.h"
#include "runtime/src/transport/transport.h"

namespace ddl::runtime {

/// The ways to the other ranks.
struct Transports {
  Transport& within_host;
  LinkTransport& between_hosts;
};

/// Owns everything that joining the job made. The identity may be read from any thread; run() and leave() may be called
/// from any thread, but refuse to run at the same time.
class Context {
 public:
  /// Joins: connects to the other ranks through the transports and begins to watch them. Collective.
  static Result<std::unique_ptr<Context>> join(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap,
                                               Transports transports, FaultInjector fault,
                                               std::uint32_t first_sequence = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int rank() const { return bootstrap_->membership().rank; }
  int size() const { return bootstrap_->membership().size; }
  int local_rank() const { return group_.index; }
  int local_size() const { return static_cast<int>(group_.members.size()); }
  int cross_rank() const { return bootstrap_->membership().layout.cross_rank(group_.index); }
  int cross_size() const { return bootstrap_->membership().layout.cross_size(group_.index); }
  const char* bootstrap_name() const { return bootstrap_->name(); }

  /// Runs a collective of the ordered tier, under the try-lock. collective(tier, deadline) returns an Outcome.
  /// timeout_seconds 0 stands for the context's default.
  template <class Collective>
  Outcome run(double timeout_seconds, Collective collective) {
    const CallLock lock(busy_);
    if (auto allowed = check_usable(lock); !allowed) return allowed;
    const double seconds = timeout_seconds > 0 ? timeout_seconds : settings_.timeout_seconds;
    OrderedTier tier(channel_, cluster_.get());
    return note(collective(tier, CallDeadline::after(seconds)));
  }

  /// Leaves the job: the others see a clean departure. Unless it fails with DDL_ERROR_BUSY, nothing but the destructor
  /// may follow. The destructor leaves if this was not called.
  Outcome leave();

  /// True in a child that was forked without exec, which must neither use nor destroy this.
  bool is_in_forked_child() const;

 private:
  /// Holds the context for one call, if nobody else does.
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

  Context(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap, SharedGroup group, Segment segment,
          FaultInjector fault);

  /// Connects this rank to its partners on other hosts, if it has a lane.
  Status connect_hosts(LinkTransport& transport, Segment segment, WaitPolicy policy);
  Status start_watching();
  void tell_links(const std::vector<PeerLink>& links) const;
  Outcome check_usable(const CallLock& lock) const;
  /// Remembers the first failure that ended the context, and lets it out only when the partners know of it.
  Outcome note(Outcome outcome);

  Settings settings_;
  std::unique_ptr<Bootstrap> bootstrap_;
  bool tells_first_ = false;  ///< the launcher waits to hear of the first collective; guarded by busy_
  SharedGroup group_;
  FaultInjector fault_;
  GroupAbort abort_;
  Channel channel_;
  std::unique_ptr<ControlLinks> control_;  ///< null without a lane
  std::unique_ptr<Cluster> cluster_;       ///< null on one host
  std::unique_ptr<ClosedInForkedChild> closed_in_child_;
  std::uint64_t fork_count_;
  std::atomic_flag busy_;
  std::optional<std::string> ended_by_;  ///< guarded by busy_
  bool left_ = false;                    ///< guarded by busy_
  Watcher watcher_;                      ///< last: its thread uses abort_ and control_
};

}  // namespace ddl::runtime
