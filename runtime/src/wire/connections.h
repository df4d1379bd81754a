// The connections between ranks that make calls together, from the view of one of them: the segment that it shares
// with the ranks of its host, links to ranks of other hosts, and watches on both. Each process set has Connections,
// and so has each pair of its ranks that send to each other (wire/connection_parts.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/fork_guard.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/shm/transport.h"
#include "runtime/src/wire/control_links.h"
#include "runtime/src/wire/job_resources.h"
#include "runtime/src/wire/lane.h"
#include "runtime/src/wire/link_transport.h"
#include "runtime/src/wire/watcher.h"

namespace ddl::runtime {

/// What a rank connects. segment is the same on all ranks of a host. plan_connections() makes it.
struct ConnectionPlan {
  SegmentConfig segment;
  /// The staging slot of a pair of ranks on different hosts.
  std::size_t remote_pair_slot_bytes = 0;
  /// The hosts that a lane is connected with from the start, and those that only some calls need.
  std::vector<int> first_hosts;
  std::vector<int> further_hosts;
};

class Connections {
 public:
  /// Called on any thread when the ranks have been aborted. Returns at once.
  using OnAbort = std::function<void(const AbortNotice&)>;

  /// Connects the ranks of the bootstrap; collective. The first connections of a context are those of the world,
  /// which watches processes of this host and holds the heap. job and bootstrap outlive this. job_ranks: the ranks in
  /// the job of these ranks. fault: for their calls. limit: how long this rank waits for the others.
  static Result<std::unique_ptr<Connections>> connect(JobResources& job, Bootstrap& bootstrap,
                                                      std::vector<int> job_ranks, ConnectionPlan plan,
                                                      FaultInjector fault, OnAbort on_abort,
                                                      const ConnectLimit& limit);
  /// Leaves and closes.
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Begins to watch the other ranks. Called once, when everything else that calls need has been set up.
  Status watch();
  /// Chooses how the ranks of this host store what they stage for each other. All of them call this, once watched and
  /// before the first call.
  void choose_stores();

  const Membership& membership() const { return membership_; }
  const HostLayout& layout() const { return membership_.layout; }
  const std::vector<int>& job_ranks() const { return job_ranks_; }
  const AbortDomain& abort() const { return abort_; }
  const Member& self() const { return channel_.self(); }
  Channel& channel() { return channel_; }
  const Segment& segment() const { return group_.segment; }
  const WaitPolicy& wait_policy() const { return policy_; }
  FaultInjector& fault() { return fault_; }
  /// Where this rank's events go; null: nowhere.
  EventLog* events() { return job_.events.get(); }
  /// Null on one host, and on a rank whose local rank does not exist on every host.
  Lane* lane() { return lane_.get(); }

  /// Connects the lane with the further hosts, inside a call that needs them. Does nothing if there is no lane, or if
  /// no hosts are left.
  Outcome connect_mesh();
  /// The host and pid of one of these ranks, for messages; may ask the bootstrap.
  Member who_is(int rank) const;
  /// A rank of another host that has left in order, if that is known.
  std::optional<Member> first_left() const { return control_ ? control_->first_left() : std::nullopt; }

  /// The connections of this rank and another one, for the first call between the two. Between hosts this waits for
  /// the other rank. Inside a call, and once for each rank. Fails as the call would. The result lives as long as
  /// this.
  tl::expected<Connections*, Failure> connect_pair(int rank, const Call& call, CallDeadline deadline);

  /// The connections of the same ranks for calls of named tensors, which one of its threads makes beside those of this
  /// object. At the first call, which one thread makes. The result lives as long as this.
  Result<Connections*> connect_duplicate(const CallDeadline& deadline);
  /// Of a duplicate: tells all ranks that this one wants to agree in its call of this number.
  void want_to_agree(std::uint32_t call);

  /// Calls on_abort if the ranks have been aborted. From any thread.
  void report_abort() const {
    if (abort_.is_raised()) on_abort_(abort_.notice());
  }
  /// If the ranks have been aborted, waits until those of other hosts, also those of pairs, have been notified, or
  /// the deadline has passed. Not on the watching thread.
  void wait_forwarded(Deadline deadline);

  /// Leaves on this host, after the last call: the others see that it has left cleanly. Nothing but close() may follow.
  /// Fails, and has left, if this rank had run ahead of a call that then failed.
  Outcome leave();
  /// Sends farewells to other hosts and closes everything.
  void close();

 private:
  class Parts;  // wire/connection_parts.h

  Connections(JobResources& job, Bootstrap& bootstrap, Membership membership, std::vector<int> job_ranks,
              ConnectionPlan plan, SharedGroup group, FaultInjector fault, OnAbort on_abort, LinkUse use);

  bool has_lane() const;
  Status connect_hosts(const ConnectLimit& limit);
  Result<std::vector<PeerLink>> link_to(const std::vector<int>& hosts, const ConnectLimit& limit);
  /// Takes the first links, or further ones.
  void add_links(std::vector<PeerLink> links);
  /// The links that the transport had established before it failed; an abort or a farewell is sent over them.
  std::vector<PeerLink> established_links();
  void report_stores() const;
  void report_links(const std::vector<PeerLink>& links) const;
  /// Makes forked children close the descriptors of this rank's connections.
  void guard_descriptors();
  std::vector<Watch> watches_of_links(std::size_t first);
  /// Of the world: the first rank of each host compares its clock with that of another one. links: the first ones.
  void compare_clocks(const std::vector<PeerLink>& links);

  std::shared_ptr<ControlLinks> shared_control() const;

  JobResources& job_;
  Bootstrap& bootstrap_;
  Membership membership_;
  std::vector<int> job_ranks_;
  ConnectionPlan plan_;
  LinkUse use_;
  bool is_world_;
  SharedGroup group_;
  FaultInjector fault_;
  OnAbort on_abort_;
  AbortDomain abort_;
  WaitPolicy policy_;
  Channel channel_;
  StoreChoice first_choice_{Stores::kPlain, StoreChoice::Origin::kGiven};  ///< for the duplicate, too
  std::unique_ptr<LinkTransport> link_transport_;                          ///< null on one host, and of pairs
  /// Null without a lane. Made while the ranks connect, and taken by close() under mutex_, since wait_forwarded() may
  /// run.
  std::shared_ptr<ControlLinks> control_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<ClosedInForkedChild> closed_in_child_;
  std::optional<ClockComparison> clock_comparison_;
  std::size_t clock_link_ = 0;  ///< of control_: with the rank whose clock is compared
  Watcher::Ticket ticket_ = 0;
  mutable std::mutex mutex_;
  bool has_left_ = false;
  std::unique_ptr<Parts> parts_;  ///< the pairs and the duplicate
};

}  // namespace ddl::runtime
