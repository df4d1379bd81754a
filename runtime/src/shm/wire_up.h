// The wire-up of the ranks of one host: the address of their leader, which is published through the bootstrap, the
// messages between the leader and the other ranks, and the leader's side. The others' side is in
// shared_memory_transport.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/error.h"
#include "runtime/src/common/fault.h"
#include "runtime/src/common/member.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/transport.h"

namespace ddl::runtime {

// The messages between the ranks of one host and their leader. Plain data between processes of one machine and one
// version of libddl, so they are sent as they lie in memory.
//
//   member -> leader   Hello
//   leader -> member   Welcome, one MemberEntry per member; the descriptors of the shared memory and of the doorbell
//                      and one pidfd per member are sent with it, in batches of kMaxPassedFds, each further batch
//                      with one more byte
//   member -> leader   one byte: mapped
//   leader -> member   one byte: all members have mapped

inline constexpr std::uint32_t kWireUpMagic = 0x44444C57;  // "DDLW"
inline constexpr std::uint32_t kWireUpVersion = 2;

using Nonce = std::array<std::uint8_t, 16>;

struct Hello {
  std::uint32_t magic = kWireUpMagic;
  std::uint32_t version = kWireUpVersion;
  Nonce nonce{};
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
  HostField host;
  /// The CPUs that the member may run on, as CpuSet::words() gives them: those below 8192, for which Linux is built.
  std::array<std::uint64_t, 8192 / 64> cpus{};
};

struct Welcome {
  std::uint32_t magic = kWireUpMagic;
  std::uint32_t version = kWireUpVersion;
  std::int32_t members = 0;
  std::int32_t cpus = 0;
};

struct MemberEntry {
  std::int32_t rank = 0;
  std::int32_t pid = 0;
  HostField host;
};

/// The bytes of a message, to be sent or filled.
template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}
template <class T>
std::span<std::byte> writable_bytes_of(T& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

// The rendezvous of the ranks of one host: the leader's socket, and the nonce by which a caller proves to be of the
// job.

/// Published through the bootstrap as text. Other users may read it there, so the leader also checks the caller's
/// user id; the nonce distinguishes jobs and contexts of one user.
struct Rendezvous {
  std::string socket_name;  ///< abstract, random
  Nonce nonce{};

  static Result<Rendezvous> random();
  std::string to_text() const;
  static Result<Rendezvous> parse(std::string_view text);
};

// The leader's side of the wire-up of one host.

/// Makes the segment, waits for every other member and passes the segment to them. Used once.
class WireUpLeader {
 public:
  /// Makes segment and socket, so that the address may be published.
  static Result<WireUpLeader> open(const Membership& membership, const SegmentConfig& config);

  std::string address() const { return rendezvous_.to_text(); }
  /// Waits until all members have connected, and gives the group to them and to the calling function. A connection
  /// from another process is closed and has no effect.
  Result<SharedGroup> gather(const ConnectLimit& limit, FaultInjector& fault);

 private:
  /// A connection from a process of our user that has not sent a complete Hello yet.
  struct Caller {
    UniqueFd socket;
    pid_t pid = 0;
    Hello hello;
    std::size_t received = 0;
  };
  enum class ReadState { kPartial, kHello, kClosed };

  WireUpLeader() = default;

  Status accept_callers();
  static ReadState read_hello(Caller& caller);
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
  std::vector<UniqueFd> sockets_;  ///< by index; empty for the leader and for members that have not connected
  std::vector<Caller> callers_;
  std::vector<CpuSet> cpus_of_;  ///< by index
  CpuSet cpus_;                  ///< of all
  ExchangeConfig exchange_;
  std::size_t arrived_ = 1;
};

}  // namespace ddl::runtime
