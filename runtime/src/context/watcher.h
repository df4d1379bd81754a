// Notices what happens to other ranks while this one computes, without ever waking up for nothing.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace ddl::runtime {

/// One descriptor to watch. on_ready() is called on the watching thread when it is readable or broken, until it returns
/// false. The descriptor is the caller's and stays open until stop().
struct Watch {
  int fd = -1;
  std::function<bool()> on_ready;
};

/// One thread, asleep in poll() until a descriptor has something to say or the watcher is stopped.
class Watcher {
 public:
  Watcher() = default;
  ~Watcher() { stop(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// With nothing to watch no thread is started. To be called once.
  Status start(std::vector<Watch> watches);

  /// Ends the thread. After this no on_ready() is running or will run.
  void stop();

 private:
  UniqueFd stop_event_;  ///< an eventfd
  std::thread thread_;
};

}  // namespace ddl::runtime
