// How much the GPUs of a node's ranks are used, as their vendor's management library says. The library is asked by a
// process of its own, which stays: the library may hang or crash, and takes a while to begin.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/topology.h"
#include "base/command.h"
#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/process/node_usage.h"

namespace ddl::launcher {

/// The program "ddlrun --watch-gpus VENDOR": prints how much each GPU is used, a line of JSON at once, a few soon, and
/// then one every 10 s; or {"failure": why}. Returns its exit code when nobody reads any more.
int print_gpu_use(const std::string& vendor);

/// On the loop's thread.
class GpuWatch {
 public:
  /// program: to which the vendor is added; the default is this program.
  explicit GpuWatch(EventLoop& loop, std::vector<std::string> program = {});

  /// From now on the GPUs of this rank are watched; nothing happens if it has none.
  void add(const RankLaunch& rank);

  /// Sets usage.gpus, in the library's order, each once, and gpus_unknown.
  void add_to(NodeUsage& usage) const;

 private:
  void start(affinity::GpuVendor vendor);
  void on_readable();
  void take(std::string_view line);
  void end(const std::string& why);

  /// What the samples of a GPU amount to. A counter of energy may begin again: then it does not rise for a while.
  struct Sum {
    void add(GpuUse now, double seconds);
    GpuUse use;
    double last_seconds = -1;
    double busy_seconds = 0;
    double watched_seconds = 0;  ///< in which it was known whether it was busy
    std::int64_t joules_before = -1;
  };

  EventLoop& loop_;
  std::vector<std::string> program_;
  std::set<int> watched_;    ///< by the library's numbers
  std::map<int, Sum> sums_;  ///< of those
  std::string unknown_;      ///< why, while nothing is known of them
  std::optional<Child> child_;
  UniqueFd out_;
  std::string text_;  ///< of a line that has not ended
  EventLoop::FdWatch watch_;
};

}  // namespace ddl::launcher
