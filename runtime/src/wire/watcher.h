// Notices what happens to other ranks while this one computes, without ever waking up for nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace ddl::runtime {

/// One descriptor to watch. on_ready() is called on the watching thread when it is readable or broken, until it returns
/// false. It must not call the watcher. The descriptor is the caller's and stays open until it is watched no more.
struct Watch {
  int fd = -1;
  std::function<bool()> on_ready;
};

/// One thread, asleep in poll() until a descriptor has something to say. add(), remove() and stop() may be called from any
/// thread but the watching one.
class Watcher {
 public:
  /// Names watches that were added together.
  using Ticket = std::uint64_t;

  Watcher() = default;
  ~Watcher() { stop(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Watches these as well, under the ticket if it is one of ours, else under a new one. Starts the thread when there is
  /// something to watch for the first time.
  Result<Ticket> add(std::vector<Watch> watches, Ticket ticket = 0);
  /// After this no on_ready() of the ticket's is running or will run. 0 is allowed and names none.
  void remove(Ticket ticket);
  /// Ends the thread; the same for all tickets.
  void stop();

 private:
  struct Entry {
    Ticket ticket = 0;
    Watch watch;
  };
  Status start();
  void run();
  /// The thread looks at the list anew.
  void wake() const;

  UniqueFd wake_event_;  ///< an eventfd
  std::thread thread_;
  std::mutex mutex_;  ///< held while on_ready() runs
  std::list<Entry> entries_;
  Ticket last_ticket_ = 0;
  std::uint64_t changes_ = 0;  ///< of the list, by others than the thread
  bool stops_ = false;
};

}  // namespace ddl::runtime
