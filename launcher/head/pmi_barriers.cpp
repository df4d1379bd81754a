#include "launcher/head/pmi_barriers.h"

#include <iterator>
#include <utility>

namespace ddl::launcher {

void PmiBarriers::on(std::size_t node, message::PmiBarrier&& barrier) {
  if (!nodes_.contains(node)) return;
  arrived_.try_emplace(node, std::move(barrier.pairs));
  if (arrived_.size() < nodes_.size()) return;
  message::PmiBarrierDone done;
  for (auto& [from, pairs] : std::exchange(arrived_, {}))
    done.pairs.insert(done.pairs.end(), std::make_move_iterator(pairs.begin()),
                      std::make_move_iterator(pairs.end()));
  const message::Any all = std::move(done);
  for (const std::size_t to : nodes_) send_(to, all);
}

}  // namespace ddl::launcher
