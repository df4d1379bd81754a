// Gets what ranks have recorded from their agents, piece by piece, so that heartbeats and output pass in between.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/loop/event_loop.h"
#include "launcher/protocol/event_messages.h"

namespace ddl::launcher {

/// What one rank has recorded.
struct CollectedEvents {
  int rank = 0;
  std::string missing;  ///< a clause that says why there is nothing; "": there may be something
  std::int64_t earliest = 0, now = 0, joining_since = 0;  ///< see message::Events
  timeline::RingSnapshot ring;
};

/// One thread. It may be destroyed, but not from inside on_rank or on_done.
class EventCollector {
 public:
  struct Actions {
    /// Sends the question to the rank's agent. False if that is lost.
    std::function<bool(const message::AskEvents&)> ask;
    std::function<void(CollectedEvents&&)> on_rank;  ///< for each rank once, in any order
    std::function<void()> on_done;                   ///< after the last one, once
  };
  /// Ranks that are asked at the same time: a copy of a ring may have 16 MiB.
  static constexpr std::size_t kParallel = 8;
  /// A healthy agent answers at once; a host that is cut off is noticed before this.
  static constexpr std::chrono::milliseconds kLimit{10'000};
  /// id: different from those of all other collectors whose answers may still come. of_timeline: see message::AskEvents.
  EventCollector(EventLoop& loop, std::int64_t id, bool of_timeline, Actions actions,
                 std::size_t parallel = kParallel, std::chrono::milliseconds limit = kLimit);

  /// Asks for the latest events of these ranks, for those of a few ranks at a time. Once.
  void start(std::vector<int> ranks, std::int64_t latest);
  std::int64_t id() const { return id_; }
  void on_events(const message::Events& piece);
  /// These ranks will not answer, as this clause says.
  void on_lost(const std::function<bool(int rank)>& is_lost, const std::string& why);

 private:
  struct Asked {
    CollectedEvents collected;
    EventLoop::Timer limit;
  };
  void ask_more();
  void ask(int rank);
  void end(int rank, const std::string& missing);

  EventLoop& loop_;
  std::int64_t id_;
  bool of_timeline_;
  std::size_t parallel_;
  std::chrono::milliseconds limit_;  ///< for each piece
  Actions actions_;
  std::int64_t latest_ = 0;
  std::deque<int> waiting_;
  std::map<int, Asked> asked_;
  bool is_asking_ = false;
  bool is_done_ = false;
  EventLoop::Timer done_timer_;
};

}  // namespace ddl::launcher
