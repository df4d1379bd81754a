#include "launcher/node/port_watch.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "launcher/node/held_ports.h"

namespace ddl::launcher {
namespace {

using net::TcpSocket;
using Sockets = std::vector<TcpSocket>;

// A program that needs longer for its start is looked after less often: at most a tenth of that time passes unseen.
// The cost of a look is that of waking up.
constexpr auto kShortestPause = std::chrono::milliseconds(50);
constexpr auto kLongestPause = std::chrono::seconds(2);
constexpr int kPausesSinceStart = 10;
// A socket may be closed, and a process get another parent, between two looks that belong together.
constexpr int kLooksForCertainty = 3;

/// The inodes of the sockets that a process has open; nullopt: it does not show them to this user, or shows no
/// descriptor, as a process that is ending while its sockets are still being closed.
std::optional<std::set<std::uint64_t>> open_sockets(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/fd", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return std::nullopt;
  constexpr std::string_view kBefore = "socket:[";
  std::set<std::uint64_t> inodes;
  bool shows_any = false;
  while (const dirent* const entry = ::readdir(folder.get())) {
    std::array<char, 64> link{};
    const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, link.data(), link.size());
    std::string_view target(link.data(), std::max<ssize_t>(size, 0));
    shows_any = shows_any || !target.empty();  // "." and ".." are no links
    if (!target.starts_with(kBefore) || !target.ends_with(']')) continue;
    target = target.substr(kBefore.size(), target.size() - kBefore.size() - 1);
    if (const auto inode = parse_integer(target)) inodes.insert(*inode);
  }
  return shows_any ? std::optional(std::move(inodes)) : std::nullopt;
}

/// proc(5), /proc/PID/status: the user of the files and sockets that a process makes.
std::optional<uid_t> user_of_process(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = status ? status->find("\nUid:") : std::string::npos;
  unsigned user = 0;
  if (at == std::string::npos || std::sscanf(status->c_str() + at, " Uid: %*u %*u %*u %u", &user) != 1)
    return std::nullopt;
  return user;
}

/// Removes those that processes below this one have open. Of a process that does not show what it has open, all sockets
/// of its user count as its own.
void remove_own(Sockets& sockets) {
  for (const ProcessId& process : descendants_of(::getpid())) {
    if (sockets.empty()) return;
    const auto open = open_sockets(process.pid);
    const auto user = open ? std::nullopt : user_of_process(process.pid);
    std::erase_if(sockets, [&](const TcpSocket& socket) {
      return open ? open->contains(socket.inode) : socket.user == user;
    });
  }
}

bool contains(const Sockets& sockets, std::uint64_t inode) {
  return std::any_of(sockets.begin(), sockets.end(), [&](const auto& one) { return one.inode == inode; });
}

std::string sentence_about(const TcpSocket& stranger) {
  const std::string whose = stranger.user == ::geteuid()
                                ? "of your own user"
                                : fmt::format("of another user (uid {})", stranger.user);
  return fmt::format(
      "TCP port {0}, which ranks take for that of their own server, was opened by a process {1} that is not "
      "of this "
      "job, so the job was ended before they trust it: start it again, which takes another port, and find "
      "out whose "
      "process that is (as root: ss -tanp 'sport = :{0}')",
      stranger.port, whose);
}

}  // namespace

void PortWatch::start(const std::vector<int>& ports) {
  // The PMIx server does not start where there is none.
  lookup_ = net::find_socket_lookup().value_or(net::SocketLookup::kSockDiag);
  ports_.insert(ports.begin(), ports.end());
  began_ = std::chrono::steady_clock::now();
  look_often();
}

void PortWatch::stop() {
  ports_.clear();
  timer_.cancel();
}

void PortWatch::look_often() {
  look();
  const auto pause = std::max<std::chrono::steady_clock::duration>(
      (std::chrono::steady_clock::now() - began_) / kPausesSinceStart, kShortestPause);
  if (served_.size() < ports_.size() && pause < kLongestPause)
    timer_ = loop_.after(pause, [this] { look_often(); });
}

void PortWatch::look() {
  if (ports_.empty()) return;
  Found found = find();
  for (int looks = 1; looks < kLooksForCertainty && !found.strangers.empty(); ++looks) {
    Found again = find();
    std::erase_if(again.strangers,
                  [&](const TcpSocket& socket) { return !contains(found.strangers, socket.inode); });
    found = std::move(again);
  }
  if (!found.strangers.empty()) {
    stop();
    return on_taken_(sentence_about(found.strangers.front()));
  }
  const std::set<int> before = std::exchange(served_, {});
  known_.clear();
  for (const TcpSocket& socket : found.listeners) {
    served_.insert(socket.port);
    known_.insert(socket.inode);
  }
  for (const int port : served_) {
    if (!before.contains(port)) on_served_(port);
  }
}

PortWatch::Found PortWatch::find() const {
  Found found;
  if (std::none_of(ports_.begin(), ports_.end(), may_have_listener)) return found;
  found.listeners = net::tcp_listeners(lookup_);
  std::erase_if(found.listeners, [this](const TcpSocket& socket) { return !ports_.contains(socket.port); });
  std::set<int> newly_served;
  for (const TcpSocket& socket : found.listeners) {
    if (known_.contains(socket.inode)) continue;
    found.strangers.push_back(socket);
    if (!served_.contains(socket.port)) newly_served.insert(socket.port);
  }
  // Somebody may have taken connections before the job's own server listened, and have closed what listened.
  for (const int port : newly_served) {
    const Sockets all = net::tcp_sockets_at(port, lookup_);
    found.strangers.insert(found.strangers.end(), all.begin(), all.end());
  }
  if (!found.strangers.empty()) remove_own(found.strangers);
  return found;
}

}  // namespace ddl::launcher
