#include "runtime/src/backend/call_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/own_thread.h"
#include "runtime/src/backend/device_call.h"

namespace ddl::runtime {
namespace {

/// How often the thread looks at calls that have not ended. Most end within milliseconds; a failure of the network shows
/// nowhere else.
constexpr int kLookMilliseconds = 100;
/// A communicator that is given up normally ends within a second.
constexpr auto kGiveUpLimit = std::chrono::seconds(10);
/// How long a failure is kept back until nothing of the calls is on the GPU any more. Work of the program's that they wait
/// for may take longer.
constexpr auto kReportLimit = std::chrono::milliseconds(500);

}  // namespace

Result<std::unique_ptr<CallWatch>> CallWatch::start(Device& device, Connections& connections,
                                                    const Call& call, Actions actions) {
  UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (doorbell.get() < 0) return fail(errno_error("eventfd", errno));
  std::unique_ptr<CallWatch> made(
      new CallWatch(device, connections, call, std::move(actions), std::move(doorbell)));
  DDL_ASSIGN(thread, start_own_thread("ddl-gpu-calls", [watch = made.get()] { watch->run(); }));
  made->thread_ = std::move(thread);
  return made;
}

bool CallWatch::end() {
  {
    std::unique_lock lock(mutex_);
    ends_ = true;
    lock.unlock();
    ring();
    lock.lock();
    // Calls end, at the latest, with their deadlines.
    changed_.wait(lock, [&] { return has_ended_ || failure_; });
    if (!changed_.wait_for(lock, kGiveUpLimit, [&] { return has_ended_; })) return false;
  }
  thread_.join();
  return true;
}

CallWatch::~CallWatch() {
  const CurrentDevice current(device_);
  running_.clear();
  to_compare_.clear();
  unused_events_.clear();
}

void CallWatch::add(const Call& call, CallDeadline deadline, DeviceEvent end) {
  bool was_idle = false;
  {
    const std::lock_guard lock(mutex_);
    last_ = call;
    was_idle = running_.empty();
    running_.push_back({call, deadline, std::move(end)});
  }
  // Otherwise it looks soon by itself.
  if (was_idle) ring();
}

void CallWatch::add_uncompared(const Call& call, CallDeadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    last_ = call;
    to_compare_.push_back({call, deadline, std::nullopt});
  }
  ring();
}

void CallWatch::set_end(DeviceEvent end) {
  const std::lock_guard lock(mutex_);
  // The last one, wherever it is by now.
  auto& calls = to_compare_.empty() ? running_ : to_compare_;
  DDL_CHECK(!calls.empty() && !calls.back().end, last_.describe());
  calls.back().end = std::move(end);
}

Outcome CallWatch::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || to_compare_.empty(); });
  return outcome(lock);
}

std::size_t CallWatch::uncompared() const {
  const std::lock_guard lock(mutex_);
  return to_compare_.size();
}

Outcome CallWatch::outcome() {
  std::unique_lock lock(mutex_);
  return outcome(lock);
}

Outcome CallWatch::failed_outcome() {
  std::unique_lock lock(mutex_);
  (void)changed_.wait_for(lock, kReportLimit, [&] { return failure_.has_value(); });
  return outcome(lock);
}

Outcome CallWatch::outcome(std::unique_lock<std::mutex>& lock) {
  if (!failure_) return {};
  // The GPU may still use the buffers of the calls.
  (void)changed_.wait_for(lock, kReportLimit, [&] { return is_given_up_; });
  return fail(*failure_);
}

Result<DeviceEvent> CallWatch::make_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!unused_events_.empty()) {
      DeviceEvent event = std::move(unused_events_.front());
      unused_events_.pop_front();
      return event;
    }
  }
  return DeviceEvent::make(device_);
}

void CallWatch::run() {
  std::unique_lock lock(mutex_);
  {
    const CurrentDevice current(device_);
    if (!current.status()) give_up_all(lock, give_up(connections_, last_, current.status().error()).error());
    watch(lock);
  }
  has_ended_ = true;
  changed_.notify_all();
}

void CallWatch::watch(std::unique_lock<std::mutex>& lock) {
  while (!failure_) {
    if (!to_compare_.empty()) {
      compare_next(lock);
    } else if (connections_.abort().is_raised()) {
      const Call call = running_.empty() ? last_ : running_.front().call;
      give_up_all(lock, connections_.abort().describe(call, true));
    } else if (auto looked = look_at_running(); !looked) {
      give_up_all(lock, looked.error());
    } else if (ends_ && running_.empty()) {
      return;
    } else {
      const bool is_waiting_for_gpu = !running_.empty();
      lock.unlock();
      sleep(is_waiting_for_gpu);
      lock.lock();
    }
  }
}

void CallWatch::compare_next(std::unique_lock<std::mutex>& lock) {
  const Call call = to_compare_.front().call;
  const CallDeadline deadline = to_compare_.front().deadline;
  lock.unlock();
  Outcome same = actions_.compare(call, deadline);
  lock.lock();
  if (!same) {
    give_up_all(lock, std::move(same.error()));
    return;
  }
  running_.push_back(std::move(to_compare_.front()));
  to_compare_.pop_front();
  if (to_compare_.empty()) changed_.notify_all();
}

Outcome CallWatch::look_at_running() {
  while (!running_.empty()) {
    const Watched& first = running_.front();
    if (!first.end) break;
    const auto done = device_.is_done(first.end->get());
    if (!done) return give_up(connections_, first.call, done.error());
    if (!*done) break;
    unused_events_.push_back(*std::move(running_.front().end));
    running_.pop_front();
  }
  if (running_.empty()) return {};
  const Watched& first = running_.front();
  if (auto healthy = actions_.check_health(); !healthy)
    return give_up_unless_aborted(connections_, first.call, healthy.error());
  // All ranks have made the call: none of them is the one that is missing.
  if (!first.deadline.has_passed_by(2)) return {};
  connections_.abort().raise_timeout(first.deadline.seconds, first.call, connections_.self());
  return fail(connections_.abort().describe(first.call, true));
}

void CallWatch::give_up_all(std::unique_lock<std::mutex>& lock, Failure failure) {
  const std::string message = failure.message;
  failure_ = std::move(failure);
  changed_.notify_all();
  lock.unlock();
  // A mismatch ends the set, too: what is on the GPUs belongs to different calls.
  const AbortDomain& abort = connections_.abort();
  if (!abort.is_raised()) abort.raise(AbortNotice::of(AbortReason::kFailed, connections_.self(), message));
  actions_.give_up();
  lock.lock();
  is_given_up_ = true;
  changed_.notify_all();
}

void CallWatch::ring() const {
  const std::uint64_t one = 1;
  (void)!::write(doorbell_.get(), &one, sizeof one);
}

void CallWatch::sleep(bool is_waiting_for_gpu) const {
  pollfd ready[] = {{doorbell_.get(), POLLIN, 0}, {connections_.abort().doorbell(), POLLIN, 0}};
  (void)retry_eintr([&] { return ::poll(ready, 2, is_waiting_for_gpu ? kLookMilliseconds : -1); });
  std::uint64_t rung = 0;
  (void)!::read(doorbell_.get(), &rung, sizeof rung);
}

}  // namespace ddl::runtime
