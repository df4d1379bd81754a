// The pairs of ranks of a process set that have sent to each other, as one rank has them.
//
// A pair is a process set of two, made when the two first meet, without anybody else. On one host it lies in a segment
// of its own within the set's, of which every rank knows the place. A rank of another host is connected with at that
// moment.
//
// Who waits for the other one's first call notices that it leaves before that: on one host by a note that it has begun
// with it, which the one who leaves looks for; between hosts because the other one listens no more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/src/collective/request.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/shm/transport.h"
#include "runtime/src/wire/link_transport.h"

namespace ddl::runtime {

class ProcessSet;
struct SetSurroundings;

/// What pairs take of the set that they are in, which outlives them.
struct PairsParent {
  const SetSurroundings& around;
  Bootstrap& bootstrap;
  const std::vector<int>& job_ranks;
  const SharedGroup& group;
  const AbortDomain& abort;
  const SharedHeap& heap;
  const FaultInjector& fault;
  LinkTransport* links;  ///< null on one host
  /// Told, on any thread, when a pair has been aborted, after which the set is of no more use.
  std::function<void(const AbortNotice&)> on_abort;
};

class Pairs {
 public:
  explicit Pairs(PairsParent parent);
  ~Pairs();
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  /// What this rank and request.peer send to each other, as a call of their pair, which is made if need be: between hosts
  /// that waits for the other rank. Inside a call of the set.
  Outcome transfer(Request request, CallDeadline deadline);

  /// The set has been aborted: so are its pairs. From any thread.
  void tell(const AbortNotice& notice) const;
  /// The same, and waits until the other ranks have been told, or the deadline has passed. Not on the watching thread.
  void wait_forwarded(const AbortNotice& notice, Deadline deadline) const;
  /// Leaves all pairs, when tell() is called no more and the set has been left on this host.
  void leave();

 private:
  struct Pair {
    TransportMaker transports;
    std::unique_ptr<ProcessSet> set;
  };

  /// The pair with another rank of the set. Fails as the call would.
  tl::expected<ProcessSet*, Failure> with(int rank, const Call& call, CallDeadline deadline);
  Result<std::shared_ptr<Pair>> make(int rank, CallDeadline deadline) const;
  /// Notes for the other rank of this host that this one has begun.
  void note_begun(int other) const;
  /// Why the pair with this rank could not be made, after which the set is of no more use.
  Failure give_up(int rank, const Error& error, const Call& call, CallDeadline deadline) const;

  PairsParent parent_;
  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<Pair>> pairs_;  ///< by rank of the set; guarded by mutex_
};

}  // namespace ddl::runtime
