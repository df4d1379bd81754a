// The hosts of an elastic job, in the order in which they have joined it, and those of them that are not used for a while.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/elastic/cooldown.h"
#include "launcher/job/allocation.h"

namespace ddl::launcher {

/// Has no clock: the caller says what time it is. One thread.
class HostPool {
 public:
  using Time = Rest::Time;

  /// cooldown: of a host that has failed.
  explicit HostPool(Cooldown cooldown) : cooldown_(std::move(cooldown)) {}

  /// The hosts that there are now. Those that were there before keep their places, and new ones come behind them. One
  /// that comes back again and again rests as after failures.
  void update(const std::vector<AllocatedNode>& hosts, Time now);
  /// The host could not be started on, or was lost. It counts as new when it returns. Unknown names are ignored.
  void on_failed(const std::string& name, Time now);

  /// The host is taken away: for the longest time it is not used.
  void on_leaving(const std::string& name, Time now);

  /// All hosts that there are, the oldest first.
  std::vector<AllocatedNode> listed() const;
  /// Those that can be used now.
  std::vector<AllocatedNode> usable(Time now) const;
  /// When the next host can be used again; nullopt: none is waited for.
  std::optional<Time> next_return(Time now) const;

 private:
  struct Host {
    AllocatedNode node;
    Rest rest;
    bool has_returned = false;  ///< once, which costs it nothing
    Rest after_return;          ///< from the second time on
    Time usable_from() const { return std::max(rest.until(), after_return.until()); }
  };
  Host* find(const std::string& name);

  Cooldown cooldown_;
  std::vector<Host> hosts_;  // the oldest first
  std::vector<Host> gone_;   // that were there before, and are not there now
};

}  // namespace ddl::launcher
