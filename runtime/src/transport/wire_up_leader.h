// The leader's side of the wire-up of one host.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/src/fault.h"
#include "runtime/src/transport/rendezvous.h"
#include "runtime/src/transport/transport.h"
#include "runtime/src/transport/wire_up_messages.h"

namespace ddl::runtime {

/// Makes the segment, waits for every other member and hands it out. Used once.
class WireUpLeader {
 public:
  /// Makes segment and socket, so that the address may be published.
  static Result<WireUpLeader> open(const Membership& membership, const SegmentWish& wish);

  std::string address() const { return rendezvous_.to_text(); }
  /// Waits until all members have come, and gives the group to them and to the caller. A caller that is no member is
  /// turned away and changes nothing.
  Result<SharedGroup> gather(const ConnectLimit& limit, FaultInjector& fault);

 private:
  /// Somebody of our user who has not said a whole Hello yet.
  struct Caller {
    UniqueFd socket;
    pid_t pid = 0;
    Hello hello;
    std::size_t received = 0;
  };
  enum class Heard { kMore, kHello, kNobody };

  WireUpLeader() = default;

  Status accept_callers();
  static Heard listen_to(Caller& caller);
  Status admit(Caller caller);
  Status admit_all(const ConnectLimit& limit);
  Status welcome_all(Deadline deadline);
  Status confirm_all(const ConnectLimit& limit);
  void plan_exchange();
  std::string not_arrived() const;

  Rendezvous rendezvous_;
  UniqueFd memory_fd_;
  UniqueFd doorbell_;
  std::shared_ptr<const MappedMemory> memory_;
  Segment segment_;
  UniqueFd listener_;
  std::map<int, std::size_t> index_of_rank_;  ///< of all members
  Members members_;
  std::vector<UniqueFd> pidfds_;   ///< by index
  std::vector<UniqueFd> sockets_;  ///< by index; empty for the leader and for who has not come
  std::vector<Caller> callers_;
  std::vector<CpuSet> cpus_of_;  ///< by index
  CpuSet cpus_;                  ///< of all
  ExchangeWish exchange_;
  std::size_t arrived_ = 1;
};

}  // namespace ddl::runtime
