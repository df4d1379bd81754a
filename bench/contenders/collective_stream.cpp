// The limit between hosts: each rank sends to the next one, over one plain TCP connection, the bytes that no
// algorithm can avoid, and at the same time receives the same number of bytes. The received data is not the result of
// the collective.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "base/fd.h"
#include "bench/contenders/measured_rank.h"

namespace {

using namespace ddl::bench;
using ddl::Result;
using ddl::Status;
using ddl::UniqueFd;

struct Neighbours {
  UniqueFd next;
  UniqueFd previous;
};

// Listens on a free port and writes its address to a file in the job's folder.
Result<UniqueFd> listen_and_publish(const RankJob& job) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) return ddl::fail_errno("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return ddl::fail_errno("listen on a free port");
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  std::ofstream file(fmt::format("{}/address-{}", job.folder, job.rank));
  file << name << ' ' << ntohs(address.sin_port) << '\n';
  file.close();
  if (file.fail()) return ddl::fail_errno("write into " + job.folder);
  return listener;
}

Result<UniqueFd> connect_to(const RankJob& job, int rank) {
  std::ifstream file(fmt::format("{}/address-{}", job.folder, rank));
  std::string name;
  std::string port;
  file >> name >> port;
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), port.c_str(), &hints, &found) != 0)
    return ddl::fail(ddl::ErrorCode::kSystem,
                     fmt::format("cannot resolve the address of rank {}: \"{}\"", rank, name));
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected = socket && ::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (!connected) return ddl::fail_errno(fmt::format("connect to {} port {}", name, port));
  return socket;
}

Result<Neighbours> find_neighbours(RankJob& job) {
  DDL_ASSIGN(listener, listen_and_publish(job));
  job.scoreboard.barrier(job.rank, job.wait());
  DDL_ASSIGN(next, connect_to(job, (job.rank + 1) % job.ranks));
  UniqueFd previous(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!previous) return ddl::fail_errno("accept");
  const int on = 1;
  ::setsockopt(next.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return Neighbours{std::move(next), std::move(previous)};
}

// One direction of the exchange. Offsets wrap around at the end of the buffer.
struct Direction {
  std::byte* buffer;
  std::size_t size;
  std::size_t done;
  std::size_t total;
  std::byte* at() const { return buffer + done % size; }
  std::size_t contiguous() const { return std::min(total - done, size - done % size); }
};

bool move_some(ssize_t moved, Direction& direction) {
  if (moved > 0) direction.done += moved;
  return moved > 0 || (moved < 0 && (errno == EAGAIN || errno == EINTR));
}

bool exchange(const Neighbours& neighbours, const Buffers& of, double share) {
  const std::size_t size = of.count * sizeof(float);
  const std::size_t total = std::ceil(share * static_cast<double>(size));
  Direction out{reinterpret_cast<std::byte*>(of.send), size, 0, total};
  Direction in{reinterpret_cast<std::byte*>(of.recv), size, 0, total};
  while (out.done < total || in.done < total) {
    pollfd both[] = {{neighbours.next.get(), static_cast<short>(out.done < total ? POLLOUT : 0), 0},
                     {neighbours.previous.get(), static_cast<short>(in.done < total ? POLLIN : 0), 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return false;
    if (both[0].revents != 0 && out.done < total &&
        !move_some(::send(both[0].fd, out.at(), out.contiguous(), MSG_DONTWAIT | MSG_NOSIGNAL), out))
      return false;
    if (both[1].revents != 0 && in.done < total &&
        !move_some(::recv(both[1].fd, in.at(), in.contiguous(), MSG_DONTWAIT), in))
      return false;
  }
  return true;
}

Status stream(RankJob& job) {
  DDL_ASSIGN(neighbours, find_neighbours(job));
  return measure(job, Expect::kNothing, [&](Collective what, const Buffers& buffers) {
    return exchange(neighbours, buffers, min_sent(what, job.hosts)) ? buffers.recv : nullptr;
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  const Status streamed = stream(*job);
  return streamed ? 0 : fail_rank(streamed.error());
}
