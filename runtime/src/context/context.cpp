#include "runtime/src/context/context.h"

#include <unistd.h>

#include "runtime/src/context/fork_guard.h"

namespace ddl::runtime {
Result<std::unique_ptr<Context>> Context::join(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap,
                                               Transport& transport, FaultInjector fault,
                                               std::uint32_t first_sequence) {
  if (auto usable = transport.is_usable(bootstrap->membership()); !usable)
    return fail(std::move(usable.error()));
  SegmentWish wish;
  wish.slot_bytes = settings.staging_bytes;
  wish.first_sequence = first_sequence;
  auto group = transport.connect(*bootstrap, wish);
  if (!group) return fail(std::move(group.error()));
  auto segment = Segment::open({group->memory->data(), group->memory->size()});
  if (!segment) return fail(std::move(segment.error()));

  auto pidfds = std::move(group->pidfds);
  std::unique_ptr<Context> context(
      new Context(settings, std::move(bootstrap), *std::move(group), *segment, std::move(fault)));
  const GroupAbort& abort = context->abort_;
  DDL_TRY(context->watcher_.start(std::move(pidfds), [&abort](int index) {
    if (!abort.has_left(index)) abort.raise({AbortReason::kDied, index});
  }));
  return context;
}

Context::Context(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap, SharedGroup group,
                 Segment segment, FaultInjector fault)
    : settings_(settings),
      bootstrap_(std::move(bootstrap)),
      group_(std::move(group)),
      fault_(std::move(fault)),
      abort_(segment, group_.members),
      channel_(segment, group_.members, group_.index,
               WaitPolicy::for_group(segment.members(), group_.cpus, settings.spin), fault_),
      fork_count_(fork_count()) {}

Context::~Context() {
  if (!left_) (void)leave();
}

bool Context::is_in_forked_child() const { return fork_count() != fork_count_; }

Outcome Context::check_usable(const CallLock& lock) const {
  if (is_in_forked_child()) {
    return failed(DDL_ERROR_ABORTED, "this context belongs to the parent of process " +
                                         std::to_string(::getpid()) +
                                         "; a child that was forked without exec cannot use it");
  }
  if (!lock.held()) return failed(DDL_ERROR_BUSY, "another thread is inside a call of this context");
  if (ended_by_) return failed(DDL_ERROR_ABORTED, "the context was aborted earlier: " + *ended_by_);
  return {};
}

Outcome Context::note(Outcome outcome) {
  if (!outcome &&
      (outcome.error().status == DDL_ERROR_PEER_LOST || outcome.error().status == DDL_ERROR_TIMEOUT)) {
    ended_by_ = outcome.error().message;
  }
  return outcome;
}

Outcome Context::leave() {
  const CallLock lock(busy_);
  if (!lock.held()) return failed(DDL_ERROR_BUSY, "another thread is inside a call of this context");
  left_ = true;
  watcher_.stop();
  abort_.leave(group_.index);
  if (auto left = bootstrap_->leave(); !left) return tl::unexpected(to_failure(left.error()));
  return {};
}

}  // namespace ddl::runtime
