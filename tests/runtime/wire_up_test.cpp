// The wire-up against callers that are not of the job, and against invalid memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/fd.h"
#include "runtime/src/shm/fd_passing.h"
#include "runtime/src/shm/shared_memory_transport.h"
#include "runtime/src/shm/wire_up.h"
#include "runtime/support/board_bootstrap.h"
#include "support/catch.h"

using namespace ddl;
using namespace ddl::runtime;

namespace {

Membership membership_of(int rank, int size) {
  runtime::test::Board board(size);
  return runtime::test::BoardBootstrap(board, rank).membership();
}

FaultInjector no_fault() { return FaultInjector(std::nullopt, 0); }

/// True if the other side closed the connection.
bool member_hung_up(int socket) {
  char byte;
  return ::recv(socket, &byte, 1, 0) <= 0;
}

}  // namespace

TEST_CASE("sealed memory cannot change its size") {
  const auto memory = make_sealed_memory(8192);
  REQUIRE(memory);
  CHECK(check_sealed_memory(memory->get()).value() == 8192);
  CHECK(::ftruncate(memory->get(), 4096) != 0);
  CHECK(::ftruncate(memory->get(), 16384) != 0);
  CHECK((::fcntl(memory->get(), F_GETFD) & FD_CLOEXEC) != 0);

  const UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(unsealed);
  const auto refused = check_sealed_memory(unsealed.get());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() == "shared memory arrived without its seals");
}

TEST_CASE("threads of one process can wire up through sockets") {
  constexpr int kRanks = 4;
  runtime::test::Board board(kRanks);
  std::vector<std::future<Result<SharedGroup>>> groups;
  for (int rank = 0; rank < kRanks; ++rank) {
    groups.push_back(std::async(std::launch::async, [&board, rank] {
      FaultInjector fault = no_fault();
      SharedMemoryTransport transport(fault);
      runtime::test::BoardBootstrap bootstrap(board, rank);
      SegmentConfig config;
      config.slot_bytes = 4096;
      REQUIRE(transport.publish(bootstrap, config));
      REQUIRE(bootstrap.fence(Deadline::never()));
      return transport.connect(bootstrap, {});
    }));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    auto group = groups[static_cast<std::size_t>(rank)].get();
    REQUIRE(group);
    CHECK(group->index == rank);
    CHECK(group->cpus >= 1);
    REQUIRE(group->members.size() == kRanks);
    for (int other = 0; other < kRanks; ++other) {
      const auto index = static_cast<std::size_t>(other);
      CHECK(group->members[index].rank == other);
      CHECK(group->members[index].host == "host" + std::to_string(other));
      CHECK(group->members[index].pid == ::getpid());
      CHECK(static_cast<bool>(group->pidfds[index]) == (other != rank));
    }
  }
}

TEST_CASE("a caller without the nonce is rejected, and the members are not affected") {
  SegmentConfig config;
  config.slot_bytes = 64;
  FaultInjector fault = no_fault();
  auto leader = WireUpLeader::open(membership_of(0, 2), config);
  REQUIRE(leader);
  const auto rendezvous = Rendezvous::parse(leader->address());
  REQUIRE(rendezvous);
  auto gathered = std::async(std::launch::async, [&] {
    return leader->gather({Deadline::after_seconds(60), -1}, fault);
  });

  const Deadline deadline = Deadline::after_seconds(60);
  const auto stranger = connect_local(rendezvous->socket_name, deadline);
  REQUIRE(stranger);
  Hello hello;
  hello.rank = 1;
  REQUIRE(send_with_fds(stranger->get(), bytes_of(hello), {}));
  CHECK(member_hung_up(stranger->get()));

  // One that closes in the middle, and one that never sends anything.
  const auto broken = connect_local(rendezvous->socket_name, deadline);
  REQUIRE(broken);
  REQUIRE(send_with_fds(broken->get(), bytes_of(hello).first(10), {}));
  ::shutdown(broken->get(), SHUT_RDWR);
  const auto silent = connect_local(rendezvous->socket_name, deadline);
  REQUIRE(silent);

  const auto member = join_wire_up(membership_of(1, 2), *rendezvous, {deadline, -1}, fault);
  CHECK(member);
  CHECK(gathered.get());
}

TEST_CASE("the leader names the ranks that did not arrive in time") {
  SegmentConfig config;
  config.slot_bytes = 64;
  FaultInjector fault = no_fault();
  auto leader = WireUpLeader::open(membership_of(0, 3), config);
  REQUIRE(leader);
  const auto gathered = leader->gather({Deadline::after_seconds(0.02), -1}, fault);
  REQUIRE_FALSE(gathered);
  CHECK(gathered.error().code() == ErrorCode::kTimeout);
  CHECK(gathered.error().message() == "not arrived in time: rank 1, 2");
}

TEST_CASE("two processes that claim one rank are an error") {
  SegmentConfig config;
  config.slot_bytes = 64;
  FaultInjector fault = no_fault();
  auto leader = WireUpLeader::open(membership_of(0, 3), config);
  REQUIRE(leader);
  const auto rendezvous = Rendezvous::parse(leader->address());
  auto gathered = std::async(std::launch::async, [&] {
    return leader->gather({Deadline::after_seconds(60), -1}, fault);
  });
  std::vector<UniqueFd> callers;
  for (int i = 0; i < 2; ++i) {
    auto caller = connect_local(rendezvous->socket_name, Deadline::after_seconds(60));
    REQUIRE(caller);
    Hello hello;
    hello.nonce = rendezvous->nonce;
    hello.rank = 1;
    REQUIRE(send_with_fds(caller->get(), bytes_of(hello), {}));
    callers.push_back(*std::move(caller));
  }
  const auto group = gathered.get();
  REQUIRE_FALSE(group);
  CHECK(group.error().message() == "two processes say that they are rank 1");
}

TEST_CASE("a leader that cannot open its rendezvous passes the reason to the others") {
  runtime::test::Board board(2);
  runtime::test::BoardBootstrap leader(board, 0), member(board, 1);
  REQUIRE(leader.put("ddl.shm.1", "failed: memfd_create: Too many open files"));
  FaultInjector fault = no_fault();
  SharedMemoryTransport transport(fault);
  REQUIRE(transport.publish(member, SegmentConfig{}));
  const auto group = transport.connect(member, {});
  REQUIRE_FALSE(group);
  CHECK(group.error().message() ==
        "connecting the ranks of host1: rank 0: memfd_create: Too many open files");
}
