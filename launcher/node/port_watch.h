// Notices when somebody else listens on a port that is held for a server of the job's ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "launcher/loop/event_loop.h"
#include "net/socket_owner.h"

namespace ddl::launcher {

/// Every user of the machine can listen on a held port (held_ports.h) before the rank for which it is held, and the
/// kernel notifies nobody of that. So this looks: often while the ranks start, and later when look() is called. A
/// server belongs to the job if a process below this one has its socket open. One thread.
class PortWatch {
 public:
  /// on_taken: called once, with a sentence about the port. on_served: the job listens on the port, and did not at the
  /// last look.
  PortWatch(
      EventLoop& loop, std::function<void(const std::string&)> on_taken,
      std::function<void(int port)> on_served = [](int) {})
      : loop_(loop), on_taken_(std::move(on_taken)), on_served_(std::move(on_served)) {}

  /// Begins to look, and looks at once.
  void start(const std::vector<int>& ports);
  void look();
  void stop();

 private:
  /// What is on the ports now: what listens, and of that and its connections what is of no process of the job.
  struct Found {
    std::vector<net::TcpSocket> listeners;
    std::vector<net::TcpSocket> strangers;
  };
  Found find() const;
  void look_often();

  EventLoop& loop_;
  std::function<void(const std::string&)> on_taken_;
  std::function<void(int)> on_served_;
  net::SocketLookup lookup_ = net::SocketLookup::kSockDiag;
  std::set<int> ports_;            ///< empty: it does not look
  std::set<int> served_;           ///< those on which the job listened at the last look
  std::set<std::uint64_t> known_;  ///< inodes of the job's listeners at the last look
  std::chrono::steady_clock::time_point began_;
  EventLoop::Timer timer_;
};

}  // namespace ddl::launcher
