#include "runtime/src/shm/wire_up.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/fd_passing.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime {

Result<Rendezvous> Rendezvous::random() {
  constexpr std::size_t kNameBytes = 16;
  DDL_ASSIGN(name, random_hex(kNameBytes));
  Rendezvous rendezvous;
  DDL_TRY(fill_random(std::as_writable_bytes(std::span(rendezvous.nonce))));
  rendezvous.socket_name = "ddl-" + name;
  return rendezvous;
}

std::string Rendezvous::to_text() const {
  return socket_name + " " + to_hex(std::as_bytes(std::span(nonce)));
}

Result<Rendezvous> Rendezvous::parse(std::string_view text) {
  const auto parts = split(text, ' ');
  Rendezvous rendezvous;
  // An abstract address has 107 bytes after its leading zero (unix(7)).
  if (parts.size() != 2 || parts[0].empty() || parts[0].size() > 107 ||
      !from_hex(parts[1], std::as_writable_bytes(std::span(rendezvous.nonce)))) {
    return fail(ErrorCode::kProtocol,
                "the local leader's address is invalid: " + std::string(text.substr(0, 200)));
  }
  rendezvous.socket_name = parts[0];
  return rendezvous;
}

namespace {

/// The maximum number of connections that are accepted before the accepted ones are read.
constexpr int kMaxAcceptedAtOnce = 32;
/// Connections without a complete Hello that are kept in addition to one per member; further ones are closed.
constexpr std::size_t kSpareCallers = 16;
/// Between two attempts to send descriptors.
constexpr std::chrono::milliseconds kPause{1};

/// The kernel limits the descriptors that a user has in flight between processes to the number that one process may
/// have open; root has no such limit. Earlier ones must be received first, and only another attempt shows that they
/// were.
Status send_when_there_is_room(int socket, std::span<const std::byte> data, std::span<const int> fds,
                               Deadline deadline) {
  for (;;) {
    auto sent = send_with_fds(socket, data, fds);
    if (sent || sent.error().system_errno() != ETOOMANYREFS || deadline.has_passed()) return sent;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<WireUpLeader> WireUpLeader::open(const Membership& membership, const SegmentConfig& config) {
  WireUpLeader leader;
  const int count = std::ssize(membership.local_members());
  const std::size_t bytes = Segment::bytes_for(count, config);
  DDL_ASSIGN(memory_fd, make_sealed_memory(bytes));
  DDL_ASSIGN(memory, MappedMemory::map_shared(memory_fd.get(), bytes));
  leader.memory_fd_ = std::move(memory_fd);
  leader.memory_ = std::make_shared<const MappedMemory>(std::move(memory));
  leader.segment_ = Segment::create({leader.memory_->data(), bytes}, count, config);
  leader.doorbell_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!leader.doorbell_) return fail_errno("eventfd");

  for (const int rank : membership.local_members()) {
    leader.index_of_rank_.emplace(rank, leader.members_.size());
    leader.members_.push_back(Member{rank, "", 0});
  }
  leader.members_.front() = Member{membership.rank, membership.host, ::getpid()};
  leader.pidfds_.resize(leader.members_.size());
  leader.sockets_.resize(leader.members_.size());
  leader.cpus_ = CpuSet::allowed();
  leader.cpus_of_.resize(leader.members_.size());
  leader.cpus_of_.front() = leader.cpus_;
  leader.exchange_ = config.exchange;
  if (count == 1) return leader;  // no other rank will connect

  DDL_ASSIGN(rendezvous, Rendezvous::random());
  leader.rendezvous_ = std::move(rendezvous);
  DDL_ASSIGN(listener, listen_local(leader.rendezvous_.socket_name, count));
  leader.listener_ = std::move(listener);
  DDL_ASSIGN(own_pidfd, open_pidfd(::getpid()));
  leader.pidfds_.front() = std::move(own_pidfd);
  return leader;
}

Result<SharedGroup> WireUpLeader::gather(const ConnectLimit& limit, FaultInjector& fault) {
  if (members_.size() > 1) {
    DDL_TRY(admit_all(limit));
    plan_exchange();
    fault.pass(FaultPoint::kBeforeWelcome);
    DDL_TRY(welcome_all(limit.deadline));
    fault.pass(FaultPoint::kAfterWelcome);
    DDL_TRY(confirm_all(limit));
  }
  SharedGroup group;
  group.memory = memory_;
  group.segment = segment_;
  group.members = members_;
  group.index = 0;
  group.pidfds = std::move(pidfds_);
  group.pidfds.front().reset();
  group.doorbell = std::move(doorbell_);
  group.cpus = cpus_.count();
  return group;
}

Status WireUpLeader::admit_all(const ConnectLimit& limit) {
  std::vector<pollfd> entries;
  while (arrived_ < members_.size()) {
    entries.assign(1, pollfd{listener_.get(), POLLIN, 0});
    for (const Caller& caller : callers_) entries.push_back(pollfd{caller.socket.get(), POLLIN, 0});
    entries.push_back(pollfd{limit.doorbell, POLLIN, 0});
    const int ready = poll_interruptibly(entries, limit.deadline);
    if (ready < 0) return fail_errno("poll");
    if (entries.back().revents != 0) return fail(ErrorCode::kClosed, "the ranks were aborted meanwhile");
    if (ready == 0 && limit.deadline.has_passed()) {
      return fail(ErrorCode::kTimeout, "not arrived in time: " + not_arrived());
    }
    std::vector<Caller> waiting;
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      Caller& caller = callers_[i];
      const ReadState state = entries[i + 1].revents == 0 ? ReadState::kPartial : read_hello(caller);
      if (state == ReadState::kPartial) {
        waiting.push_back(std::move(caller));
      } else if (state == ReadState::kHello) {
        DDL_TRY(admit(std::move(caller)));
      }
    }
    callers_ = std::move(waiting);
    if (entries[0].revents != 0) DDL_TRY(accept_callers());
  }
  callers_.clear();
  listener_.reset();
  return {};
}

Status WireUpLeader::accept_callers() {
  for (int i = 0; i < kMaxAcceptedAtOnce; ++i) {
    UniqueFd socket(retry_eintr(
        [&] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
    if (!socket) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      if (errno == ECONNABORTED) continue;
      return fail_errno("accept");
    }
    const auto credentials = peer_credentials(socket.get());
    const bool is_ours = credentials && credentials->uid == ::geteuid();
    if (!is_ours || callers_.size() >= members_.size() + kSpareCallers) continue;  // closes it
    Caller caller;
    caller.socket = std::move(socket);
    caller.pid = credentials->pid;
    callers_.push_back(std::move(caller));
  }
  return {};
}

WireUpLeader::ReadState WireUpLeader::read_hello(Caller& caller) {
  const auto rest = writable_bytes_of(caller.hello).subspan(caller.received);
  const ssize_t got = retry_eintr([&] { return ::recv(caller.socket.get(), rest.data(), rest.size(), 0); });
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? ReadState::kPartial : ReadState::kClosed;
  if (got == 0) return ReadState::kClosed;
  caller.received += static_cast<std::size_t>(got);
  return caller.received == sizeof(Hello) ? ReadState::kHello : ReadState::kPartial;
}

Status WireUpLeader::admit(Caller caller) {
  const Hello& hello = caller.hello;
  if (hello.magic != kWireUpMagic || hello.nonce != rendezvous_.nonce)
    return {};  // not of this job: closes the connection
  const auto found = index_of_rank_.find(hello.rank);
  if (hello.version != kWireUpVersion || found == index_of_rank_.end()) {
    return fail(ErrorCode::kProtocol, "rank " + std::to_string(hello.rank) + " on " + hello.host.str() +
                                          " does not belong here or uses another version of libddl");
  }
  const std::size_t index = found->second;
  if (index == 0 || sockets_[index]) {
    return fail(ErrorCode::kProtocol, "two processes say that they are rank " + std::to_string(hello.rank));
  }
  if (caller.pid == 0) {
    return fail(ErrorCode::kUnavailable, "rank " + std::to_string(hello.rank) + " on " + hello.host.str() +
                                             " is in another pid namespace, so its death could not be seen");
  }
  // The pid cannot have been reused: the member answers once more after this, in confirm_all().
  DDL_ASSIGN(pidfd, open_pidfd(caller.pid));
  members_[index] = Member{hello.rank, hello.host.str(), caller.pid};
  pidfds_[index] = std::move(pidfd);
  cpus_of_[index] = CpuSet::of_words(hello.cpus);
  cpus_ |= cpus_of_[index];
  sockets_[index] = std::move(caller.socket);
  ++arrived_;
  return {};
}

void WireUpLeader::plan_exchange() {
  const int count = std::ssize(members_);
  std::vector<CpuPlace> place_of;
  if (asks_for_places(exchange_, count, cpus_.count())) {
    const CpuPlaces places = CpuPlaces::read(cpus_);
    for (const CpuSet& cpus : cpus_of_) place_of.push_back(places.of(cpus));
  }
  // No other rank has seen the segment yet.
  segment_.set_leaders(plan_groups(exchange_, count, cpus_.count(), place_of));
}

Status WireUpLeader::welcome_all(Deadline deadline) {
  Welcome welcome;
  welcome.members = static_cast<std::int32_t>(members_.size());
  welcome.cpus = cpus_.count();
  std::vector<std::byte> message(bytes_of(welcome).begin(), bytes_of(welcome).end());
  for (const Member& member : members_) {
    const MemberEntry entry{member.rank, member.pid, HostField::of(member.host)};
    message.insert(message.end(), bytes_of(entry).begin(), bytes_of(entry).end());
  }
  std::vector<int> fds{memory_fd_.get(), doorbell_.get()};
  for (const UniqueFd& pidfd : pidfds_) fds.push_back(pidfd.get());

  for (std::size_t i = 1; i < sockets_.size(); ++i) {
    const int socket = sockets_[i].get();
    DDL_TRY(set_nonblocking(socket, false));
    DDL_TRY(limit_blocking(socket, deadline));
    std::span<const int> left(fds);
    std::span<const std::byte> data(message);
    const std::byte further{};
    while (!left.empty()) {
      const auto batch = left.first(std::min(left.size(), kMaxPassedFds));
      if (auto sent = send_when_there_is_room(socket, data, batch, deadline); !sent) {
        return fail(std::move(sent.error().during("welcoming " + members_[i].describe())));
      }
      left = left.subspan(batch.size());
      data = {&further, 1};
    }
  }
  return {};
}

Status WireUpLeader::confirm_all(const ConnectLimit& limit) {
  std::vector<UniqueFd> none;
  for (std::size_t i = 1; i < sockets_.size(); ++i) {
    std::byte mapped{};
    auto received = wait_readable(sockets_[i].get(), limit);
    if (received) received = receive_exactly(sockets_[i].get(), {&mapped, 1}, none);
    if (!received) {
      return fail(std::move(received.error().during("waiting for " + members_[i].describe())));
    }
  }
  const std::byte complete{};
  for (std::size_t i = 1; i < sockets_.size(); ++i) {
    // All ranks notice by its pidfd if a member has died meanwhile.
    (void)send_with_fds(sockets_[i].get(), {&complete, 1}, {});
  }
  return {};
}

std::string WireUpLeader::not_arrived() const {
  std::string ranks;
  for (std::size_t i = 1; i < sockets_.size(); ++i) {
    if (!sockets_[i]) ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(members_[i].rank);
  }
  return ranks;
}

}  // namespace ddl::runtime
