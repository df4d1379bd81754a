#include "cluster/harness/gate.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <list>
#include <stdexcept>
#include <vector>

namespace ddl::cluster {
namespace {

/// The connections to one client and to the host, and the data in each direction.
struct Passage {
  UniqueFd caller;
  UniqueFd host;
};

sockaddr_in address_of(const std::string& name, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) throw std::runtime_error("no host " + name);
  sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  ::freeaddrinfo(found);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

UniqueFd connect_to(const std::string& host) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = address_of(host, 22);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

// False at the end of either side. Blocks until the other side reads, which both ends of ssh do in time.
bool pass_on(int from, int to) {
  std::array<char, 16384> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(from, buffer.data(), buffer.size()); });
  return got > 0 && write_all(to, buffer.data(), static_cast<std::size_t>(got)).has_value();
}

}  // namespace

Gate::Gate(const std::string& host, int closed_at_first)
    : host_(host), to_close_(closed_at_first), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = address_of("head", 0);
  socklen_t size = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("listening on the head");
  port_ = ntohs(address.sin_port);
  auto pipe = make_pipe();
  if (!pipe) throw std::runtime_error(pipe.error().message());
  stop_read_ = std::move(pipe->first);
  stop_write_ = std::move(pipe->second);
  thread_ = std::thread([this] { run(); });
}

Gate::~Gate() {
  stop_write_.reset();
  thread_.join();
}

void Gate::run() {
  std::list<Passage> passages;
  for (;;) {
    std::vector<pollfd> entries = {{stop_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Passage& passage : passages) {
      entries.push_back({passage.caller.get(), POLLIN, 0});
      entries.push_back({passage.host.get(), POLLIN, 0});
    }
    retry_eintr([&] { return ::poll(entries.data(), entries.size(), -1); });
    if (entries[0].revents != 0) return;
    std::size_t at = 2;
    for (auto passage = passages.begin(); passage != passages.end(); at += 2) {
      const auto current = passage++;
      const int caller = current->caller.get(), host = current->host.get();
      if ((entries[at].revents != 0 && !pass_on(caller, host)) ||
          (entries[at + 1].revents != 0 && !pass_on(host, caller)))
        passages.erase(current);
    }
    if (entries[1].revents == 0) continue;
    UniqueFd caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!caller || ++connections_ <= to_close_) continue;
    if (UniqueFd host = connect_to(host_)) passages.push_back({std::move(caller), std::move(host)});
  }
}

}  // namespace ddl::cluster
