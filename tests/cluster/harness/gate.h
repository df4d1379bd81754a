// A proxy for a host's sshd that closes the first connections, as a busy bastion does.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/fd.h"

namespace ddl::cluster {

/// Listens on a port of the head. Closes the first connections before any data, this number of them; forwards the
/// others. Has its own thread.
class Gate {
 public:
  /// host: the name of a host of the cluster.
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
