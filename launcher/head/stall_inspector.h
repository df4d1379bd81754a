// Tells the user what a job waits for that does not go on, and ends it if the user wants that.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/head/stall_report.h"
#include "launcher/job/rank_activity.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

/// The question for the ranks' activity that is asked for a sentence about a stall: its number, no pause, and tensors.
inline const message::AskActivity kAskForStall{0, 0, 256};

/// When an agent reports a stall, asks all agents what their ranks do, and combines the answers. One thread.
class StallInspector {
 public:
  struct Settings {
    double warning_seconds = 60;     ///< a wait of at least this length is reported; 0: none is
    double shutdown_seconds = 0;     ///< the job ends for a wait of this length; 0: never
    std::vector<std::string> hosts;  ///< by rank
    std::vector<int> nodes;          ///< by rank: the node of its agent
  };
  struct Actions {
    std::function<void()> ask;  ///< every node for its Activity
    std::function<void(const std::string&)> note;
    std::function<void(const Stall&)> end_job;  ///< for this stall
  };
  StallInspector(EventLoop& loop, Settings settings, Actions actions);

  /// The sentences that were told, the first kMostKept.
  const std::vector<std::string>& sentences() const { return sentences_; }
  void on_stalled();
  /// The answer of a node. Ranks that are not on the node are ignored.
  void on_activity(int node, std::vector<RankActivity> ranks);

 private:
  static constexpr std::size_t kMostKept = 100;

  void conclude();

  EventLoop& loop_;
  Settings settings_;
  Actions actions_;
  std::size_t num_nodes_;
  std::map<int, std::vector<RankActivity>> answers_;  ///< by node, while asking
  bool is_asking_ = false;
  EventLoop::Timer limit_;
  std::vector<std::string> sentences_;
  std::map<std::string, double> told_;  ///< by key of the stall: how long it had lasted
};

}  // namespace ddl::launcher
