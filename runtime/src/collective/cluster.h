// The collectives of a job on several hosts, from the view of one rank.
//
// The first ranks of every host, as many as the smallest host has, each have a *lane*: connections to the ranks of
// the same local rank on other hosts. A call is cut into chunks, and each chunk into one slice per lane. For each
// chunk
//   1. every rank puts its input into its slot, and the ranks of the host exchange;
//   2. a rank with a lane makes its slice's value of this host (an allreduce reduces the local ranks in order), sends
//      it along its route between hosts (collective/slice_route.h), and puts the result into its slot;
//   3. the ranks of the host exchange again, and every rank takes all slices.
// The exchange of step 3 is also that of step 1 of a later chunk, so several chunks are under way at once.
//
// Before that, the ranks compare their calls: on each host by the first exchange, between hosts by frames that go
// through the steps of an allreduce. The first chunk of a small allreduce is piggybacked on these frames, and so are
// all data of a small move, so such a call costs one trip along the tree. Nothing is written to a user's buffer
// before the comparison has ended.
//
// A rank that is alone on its host needs no slot: it works on the caller's buffers as far as possible.
//
// No deadlock: a rank enters the exchange of round r only when its slice of chunk r - kDepth has been received and
// sent completely. Of all awaited slices, consider one of the lowest chunk. Its sender either drives its lane, or
// waits on its own host for a rank that would have to wait for a lower chunk. Nor can the slice stay behind others in
// a socket, however many sockets there are and in whatever order their slices come: the sender posts no slice of
// chunk c + kDepth before all of chunk c is in the sockets. So all data in front of the slice belong to chunks that
// the receiver, which waits for chunk c, has begun, and it takes these out of the sockets even before it awaits them
// (wire/slice_queue.h).
#pragma once

#include <array>
#include <vector>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/collective/block_move.h"
#include "runtime/src/collective/call_agreement.h"
#include "runtime/src/collective/cluster_call.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/collective/slice_route.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/wire/connections.h"
#include "runtime/src/wire/lane.h"

namespace ddl::runtime {

/// Not thread-safe: one call at a time.
class Cluster {
 public:
  /// connections are between ranks on several hosts and outlive this.
  explicit Cluster(Connections& connections);

  Outcome run(const Request& request, CallDeadline deadline);

 private:
  /// The maximum number of chunks that are under way between hosts at once.
  static constexpr std::size_t kDepth = 3;

  Outcome compare(const Call& call, CallDeadline deadline);
  Outcome move(const Request& request, const BlockMove& blocks, CallDeadline deadline);
  Outcome scan(const Request& request, CallDeadline deadline);
  Outcome run(ClusterCall& work, const Call& call, CallDeadline deadline);
  /// Compares the calls with the other hosts; if piggybacks, the first chunk goes with the comparison.
  /// While this rank exchanges data with those of other hosts.
  contract::Event exchange_event() const;
  Outcome agree(CallAgreement& agreement, ClusterCall& work, bool piggybacks);
  /// This rank has slept for the partner on that host, which has said for whom it has waited itself.
  void note_wait(int host, int awaited_by_partner, std::int64_t nanoseconds);
  ClusterContext context() const { return {layout_, areas_, channel_}; }
  /// Connects the mesh, once all ranks have agreed on a call that needs it.
  Outcome have_mesh();
  void begin_run(std::uint64_t chunk, ClusterCall& work);
  Outcome finish_run(std::uint64_t chunk);
  HostRun& run_of(std::uint64_t chunk) { return runs_[chunk % kDepth]; }
  bool advance_runs();

  Connections& connections_;
  const HostLayout& layout_;
  SlotAreas areas_;
  Channel& channel_;
  Lane* lane_;     ///< null on ranks without a lane
  bool has_mesh_;  ///< the lanes of all ranks are connected with all hosts
  std::vector<TreeStep> agreement_steps_;
  std::array<HostRun, kDepth> runs_;
  std::uint64_t first_running_ = 0;  ///< the first chunk that has been begun and not finished
  std::uint64_t end_running_ = 0;    ///< the first chunk after it that has not been begun
};

}  // namespace ddl::runtime
