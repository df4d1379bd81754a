// Notices events of other ranks while this one computes, without periodic wake-ups.
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

/// One descriptor to watch. on_ready() is called on the watching thread when it is readable or broken, until it
/// returns false. It must not call the watcher. The caller owns the descriptor and keeps it open until it is no
/// longer watched.
struct Watch {
  int fd = -1;
  std::function<bool()> on_ready;
};

/// One thread that sleeps in poll() until a descriptor is ready. add(), remove() and stop() may be called from any
/// thread except the watching one.
class Watcher {
 public:
  /// Names watches that were added together.
  using Ticket = std::uint64_t;

  Watcher() = default;
  ~Watcher() { stop(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Watches these too, under the ticket, or under a new one if it is 0. The first call with watches starts the
  /// thread.
  Result<Ticket> add(std::vector<Watch> watches, Ticket ticket = 0);
  /// After this no on_ready() of the ticket is running or will run. 0 is allowed and does nothing.
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
  /// Makes the thread read the list again.
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
