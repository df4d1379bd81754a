// Notices that a peer's process has ended, without ever waking up for nothing.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace ddl::runtime {

/// One thread, asleep in poll() on the peers' pidfds until one ends or the watcher is destroyed. Sockets would not do:
/// a forked child's inherited copy suppresses their end of stream.
class PeerWatcher {
 public:
  PeerWatcher() = default;
  ~PeerWatcher() { stop(); }
  PeerWatcher(const PeerWatcher&) = delete;
  PeerWatcher& operator=(const PeerWatcher&) = delete;

  /// Takes the pidfds; empty ones are skipped, and without any no thread is started. on_end(index) is called on the
  /// watching thread, once per peer that ended. To be called once.
  Status start(std::vector<UniqueFd> pidfds, std::function<void(int index)> on_end);

  /// Ends the thread. After this no on_end() is running or will run.
  void stop();

 private:
  UniqueFd stop_event_;  ///< an eventfd
  std::thread thread_;
};

}  // namespace ddl::runtime
