// A way to a host's sshd that turns the first callers away, as a busy bastion does.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/fd.h"

namespace ddl::cluster {

/// Listens on a port of the head. Closes the first so many connections before a word is said; passes the others on.
/// Has a thread of its own.
class Gate {
 public:
  /// host: by its name, of the cluster.
  Gate(const std::string& host, int closed_at_first);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void run();

  std::string host_;
  int to_close_;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  UniqueFd listener_;
  UniqueFd stop_read_;
  UniqueFd stop_write_;
  std::thread thread_;
};

}  // namespace ddl::cluster
