// Which message goes into which receive, on the rank that receives: a pure component.
//
// Messages are matched as MPI matches them. A message takes the receive that was posted first among those that it fits;
// a receive takes the message that has arrived first among those that fit it. Receives of different process sets never
// see each other's messages.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/src/message/message.h"

namespace ddl::runtime {

/// A message that has arrived, or has been announced.
struct Arrival {
  std::uint32_t set = 0;
  int from = 0;  ///< the sender's rank in the job
  int tag = 0;
  std::uint64_t bytes = 0;
  ddl_dtype dtype = 0;
  std::vector<std::byte> payload;  ///< if it is here
  std::uint64_t number = 0;        ///< if it has been announced; 0: it is here
  std::uint64_t address = 0;       ///< then: in the sender's memory
  MessagePtr own;                  ///< this rank sends it to itself, and its bytes are still in its buffer
};

/// Whether all ranks that a receive from any rank may get a message from, but for own, have left.
bool is_in_vain(const Message& receive, const std::unordered_set<int>& left, int own);

/// Not thread-safe.
class Matching {
 public:
  /// A receive is posted: the message for it, if one has arrived; else it waits.
  std::optional<Arrival> post(const MessagePtr& receive);
  /// The receive for a message that arrives, which then waits no longer; null if there is none.
  MessagePtr take(const Arrival& arrival);
  /// A message waits for its receive.
  void keep(Arrival arrival) { unexpected_[arrival.set].push_back(std::move(arrival)); }

  /// It waits no longer.
  void remove(const MessagePtr& receive) { posted_[receive->set].remove(receive); }
  /// A receive that waits for this rank of the job and no other; null: there is none.
  MessagePtr waiting_for(int rank) const;
  /// A receive from any rank whose other ranks than own have all left; null: there is none.
  MessagePtr waiting_in_vain(const std::unordered_set<int>& left, int own) const;
  /// Nobody posts receives of this process set any more: the messages that wait for one.
  std::list<Arrival> forget_set(std::uint32_t set);
  /// All receives that wait, which wait no longer.
  std::vector<MessagePtr> clear();

 private:
  std::unordered_map<std::uint32_t, std::list<MessagePtr>> posted_;
  std::unordered_map<std::uint32_t, std::list<Arrival>> unexpected_;
};

}  // namespace ddl::runtime
