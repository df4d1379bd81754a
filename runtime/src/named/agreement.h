// What the ranks of a process set have agreed on about their named tensors. Every rank has one, and all are the same:
// they change only by rounds, in which every rank learns what all announce, and by batches that all execute.
//
// A tensor is ready when every rank has announced it or has joined (has no more data). The tensors that become ready in
// a round are executed in an order that all compute alike, several as one if they fit together.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/named/frame.h"
#include "runtime/src/named/prediction.h"

namespace ddl::runtime {

/// Pure, and not thread-safe.
class Agreement {
 public:
  /// labels: each rank as messages name it, "rank 2 on node7".
  Agreement(std::vector<std::string> labels, Prediction::Limits limits);

  struct Round {
    bool has_news = false;  ///< some rank has said something new
    /// All ranks have joined, and this is the highest of those that joined last: none has joined any more.
    std::optional<int> last_joined;
  };
  /// A round: the frames of all ranks, by rank.
  Round add_round(const std::vector<Frame>& frames);

  /// What has been agreed and not executed; null: nothing.
  const Batch* agreed() const { return agreed_.empty() ? nullptr : &agreed_.front(); }
  /// The batch that is expected next, if nothing has been agreed and no rank has joined; null: none.
  const Batch* predicted() const;
  const Prediction& prediction() const { return prediction_; }
  /// The one of the two that comes next; null: neither.
  const Batch* next() const { return agreed() != nullptr ? agreed() : predicted(); }
  /// All ranks have executed next(). The parts that follow a predicted one are agreed.
  void executed();

  bool has_joined(int rank) const { return is_joined_[rank] != 0; }
  /// That a rank has announced the end of.
  std::uint64_t steps_of(int rank) const { return steps_[rank]; }

 private:
  /// A tensor that some ranks have announced.
  struct Announced {
    std::map<int, Announcement> by_rank;
    std::uint64_t order = 0;  ///< of the first announcement
  };

  bool is_complete(const Announced& announced) const;
  Batch batch_of_one(const Announced& announced) const;
  std::optional<std::string> complaint(const Announced& announced) const;
  std::vector<Announced> take_ready();
  void agree_on(const std::vector<Announced>& ready);

  std::vector<std::string> labels_;
  Prediction::Limits limits_;
  Prediction prediction_;
  std::map<std::string, Announced> announced_;
  std::uint64_t announcements_ = 0;
  std::deque<Batch> agreed_;
  std::vector<std::uint8_t> is_joined_;  ///< by rank
  int joined_ = 0;
  std::vector<std::uint64_t> steps_;  ///< by rank, as its last frame said
  std::uint64_t ended_steps_ = 0;     ///< that all ranks have ended
};

}  // namespace ddl::runtime
