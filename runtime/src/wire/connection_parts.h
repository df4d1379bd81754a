// The connections that a rank makes within those of its process set when it first needs them: those of its pairs with
// other ranks, for transfers, and the duplicate, for named tensors. An abort of a part is one of the whole, and the
// reverse.
//
// A pair of ranks of one host uses a segment within that of their set, at an offset that every rank can compute. A
// pair of ranks of different hosts is linked at its first transfer. A rank that waits for the first call of the other
// one notices if the other one leaves before that: on one host the waiting rank records that it has begun, and the
// leaving rank reads this record; between hosts the other rank stops listening. The duplicate has a segment behind that
// of the set, and links of its own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/src/bootstrap/duplicate_bootstrap.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// What the duplicate is connected with, published to the other ranks before the fence of the first connections.
struct DuplicateTransport {
  std::unique_ptr<DuplicateBootstrap> bootstrap;
  std::unique_ptr<LinkTransport> links;  ///< null on one host, and once the duplicate has it

  /// bootstrap outlives the result.
  static DuplicateTransport make(JobResources& job, Bootstrap& bootstrap);
  Status publish() { return links ? links->publish(*bootstrap) : Status(); }
};

/// Of one Connections, the whole. Only its functions use this.
class Connections::Parts {
 public:
  /// whole outlives this.
  explicit Parts(Connections& whole) : whole_(whole) {}

  /// Before the duplicate is connected.
  void set_duplicate_transport(DuplicateTransport transport) { duplicate_transport_ = std::move(transport); }
  /// See Connections.
  tl::expected<Connections*, Failure> connect_pair(int rank, const Call& call, CallDeadline deadline);
  Result<Connections*> connect_duplicate(const CallDeadline& deadline);

  /// Those that are connected. From any thread.
  std::vector<std::shared_ptr<Connections>> all() const;
  /// Raises an abort in all parts. From any thread.
  void abort(const AbortNotice& notice) const;
  /// This rank leaves: closes the parts, and tells ranks of this host that wait for a part that it has not connected.
  void leave();
  /// Ranks of other hosts that wait for the duplicate notice.
  void stop_listening() { duplicate_transport_.links.reset(); }
  /// The descriptors that are open before the duplicate is connected.
  std::vector<int> fds() const;

 private:
  /// Raises an abort of a part in the whole.
  OnAbort raising() const;
  Result<std::shared_ptr<Connections>> make_pair(int rank);
  Status link_pair(Connections& pair, int rank, CallDeadline deadline);
  Result<SharedGroup> pair_memory(int other) const;
  /// Records for the other rank of this host that this one has begun to send to it, or to receive from it.
  void record_begun(int other) const;
  void leave_unbegun_pairs() const;
  /// The failure of a pair that could not be connected. Unless pairs are unsupported, the set is aborted too.
  Failure pair_failure(int rank, const Error& error, const Call& call, CallDeadline deadline) const;
  Status link_duplicate(Connections& duplicate, const CallDeadline& deadline);
  void leave_duplicate() const;

  Connections& whole_;
  DuplicateTransport duplicate_transport_;
  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<Connections>> pairs_;  ///< by rank; guarded by mutex_
  std::shared_ptr<Connections> duplicate_;             ///< null until it is connected; guarded by mutex_
};

}  // namespace ddl::runtime
