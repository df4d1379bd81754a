#include "runtime/src/named/engine.h"

#include <sched.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/own_thread.h"
#include "runtime/src/common/fork_guard.h"

namespace ddl::runtime {
namespace {

std::vector<std::string> labels_of(const Connections& connections) {
  std::vector<std::string> labels;
  for (int rank = 0; rank < connections.membership().size; ++rank)
    labels.push_back(connections.who_is(rank).label());
  return labels;
}

Outcome waits_in_callback() {
  return failed(DDL_ERROR_INVALID_ARGUMENT,
                "a callback cannot wait: no tensor of the process set makes progress before it returns");
}

Failure has_left() {
  return {DDL_ERROR_ABORTED, "this rank left the process set before the tensor was complete"};
}

}  // namespace

bool SignalledCondition::wait(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  const std::uint32_t seen = notifications_.load();
  FutexPlatform platform;
  ++sleepers_;
  lock.unlock();
  (void)platform.wait(notifications_, seen, deadline);
  lock.lock();
  --sleepers_;
  return platform.was_signalled;
}

void SignalledCondition::notify_all() {
  if (sleepers_ == 0) return;
  notifications_.fetch_add(1);
  FutexPlatform().wake_all(notifications_);
}

Engine::Engine(JobResources& job, Connections& connections, CollectiveBackend& first,
               Prediction::Limits limits, contract::SetRecord* shown)
    : job_(job),
      connections_(connections),
      first_(first),
      any_may_call_(first.allows_own_threads()),
      shown_(shown),
      fork_count_(fork_count()),
      patience_(job.settings.batch_patience),
      rank_(connections.membership().rank),
      size_(connections.membership().size),
      agreement_(labels_of(connections), limits) {
  bells_.emplace(connections.segment().twin(), connections.channel().index());
}

// What the program does.

Outcome Engine::submit(const std::vector<SubmissionPtr>& submissions) {
  if (fork_count() != fork_count_) return tl::unexpected(inherited_by_fork());
  const Lock lock(mutex_);
  if (is_closing_) return failed(DDL_ERROR_INVALID_ARGUMENT, "this process set has been left");
  if (broken_) return failed(DDL_ERROR_ABORTED, "the context was aborted earlier: " + broken_->message);
  if (joining_ != nullptr) {
    return failed(DDL_ERROR_INVALID_ARGUMENT,
                  "this rank has joined: it hands over no tensors until all ranks have");
  }
  std::unordered_set<std::string_view> names;
  for (const SubmissionPtr& submission : submissions) {
    if (names.insert(submission->name()).second && !open_.contains(submission->name())) continue;
    return failed(DDL_ERROR_INVALID_ARGUMENT, "a tensor with the name \"" + submission->name() +
                                                  "\" has been handed over before, and is not complete");
  }
  const bool had_work = has_work(), had_unannounced = !unannounced_.empty();
  const bool ends_habit = habit_.handed_over(!had_work && submissions.size() == 1);
  const Deadline patience = Deadline::after(patience_);
  take(submissions);
  for (const SubmissionPtr& submission : submissions) {
    submission->announcement.follows_completion = std::exchange(saw_completion_, false);
    submission->patience = patience;
    submission->is_open = true;
    if (shown_ != nullptr) submission->shown = job_.record->add_tensor(*shown_, submission->name());
    submission->logged = log_submission(*submission);
    if (agreement_.prediction().place_of(submission->name(), submission->terms()) ==
        Prediction::Place::kUnexpected)
      ++unexpected_;
  }
  if (!thread_.joinable()) start_thread();
  pass(CallKind::kAgree, FaultPoint::kAfterHandingOver);
  if (is_asleep_) {
    // The first tensor that is not announced limits the sleep.
    if (next_call() != NextCall::kNone || !had_unannounced) bells_->ring_own();
  } else if (!is_driven_ && !habit_.is_there() &&
             (!had_work || ends_habit || next_call() != NextCall::kNone)) {
    has_work_.notify_one();
  }
  return {};
}

void Engine::take(const std::vector<SubmissionPtr>& submissions) {
  // All or none, also if memory ends: a program whose call has failed may free its buffers.
  const std::size_t before = unannounced_.size();
  std::size_t taken = 0;
  try {
    unannounced_.insert(unannounced_.end(), submissions.begin(), submissions.end());
    for (; taken < submissions.size(); ++taken) open_.emplace(submissions[taken]->name(), submissions[taken]);
  } catch (...) {
    unannounced_.resize(std::min(before, unannounced_.size()));
    while (taken-- > 0) open_.erase(submissions[taken]->name());
    throw;
  }
}

void Engine::want(Submission& submission) {
  if (!submission.is_open || submission.is_wanted) return;
  submission.is_wanted = true;
  ++wanted_;
  if (is_asleep_ && next_call() != NextCall::kNone) bells_->ring_own();
}

Outcome Engine::wait(Submission& submission) {
  if (fork_count() != fork_count_) return tl::unexpected(inherited_by_fork());
  Lock lock(mutex_);
  if (!submission.is_complete && is_calling_back()) return waits_in_callback();
  // Its thread no longer waits to be woken for the next tensors.
  if (habit_.waited(submission.patience.when() - patience_)) has_work_.notify_one();
  want(submission);
  if (!submission.is_complete) {
    const LoggedInterval logged(events(), event_of_engine(contract::Event::Kind::kWait), submission.name());
    drive_until(lock, [&] { return submission.is_complete.load(); });
  }
  saw_completion_ = true;
  return submission.outcome;
}

tl::expected<bool, Failure> Engine::test(Submission& submission) {
  if (fork_count() != fork_count_) return tl::unexpected(inherited_by_fork());
  // A program that tests again and again would have the lock and a CPU most of the time, and the thread that carries
  // the tensor out would hardly get either.
  if (submission.is_tested.load(std::memory_order_relaxed) && !submission.is_complete) {
    ::sched_yield();
    return false;  // what completes now is noticed by the next test, under the lock
  }
  const Lock lock(mutex_);
  submission.is_tested = true;
  want(submission);
  if (submission.is_complete) saw_completion_ = true;
  const bool ends_habit = habit_.end();
  if (!submission.is_complete && !is_driven_ && (ends_habit || next_call() != NextCall::kNone))
    has_work_.notify_one();
  return submission.is_complete.load();
}

Outcome Engine::join(int& last) {
  if (fork_count() != fork_count_) return tl::unexpected(inherited_by_fork());
  Lock lock(mutex_);
  if (is_calling_back()) return waits_in_callback();
  if (is_closing_) return failed(DDL_ERROR_INVALID_ARGUMENT, "this process set has been left");
  if (broken_) return failed(DDL_ERROR_ABORTED, "the context was aborted earlier: " + broken_->message);
  if (joining_ != nullptr) return failed(DDL_ERROR_BUSY, "another thread of this rank has joined");
  // Another thread may join again before this one goes on.
  const auto joined = std::make_shared<std::optional<int>>();
  joining_ = joined;
  if (shown_ != nullptr) shown_->has_joined = 1;
  if (is_asleep_) bells_->ring_own();
  // What the last round has found ready is carried out with this rank, too, which may leave or sleep after this.
  {
    const LoggedInterval logged(events(), event_of_engine(contract::Event::Kind::kWait), "ddl_join");
    drive_until(lock, [&] { return broken_ || (*joined && agreement_.agreed() == nullptr); });
  }
  if (joining_ == joined) joining_ = nullptr;
  if (!*joined) return tl::unexpected(*broken_);
  last = **joined;
  return {};
}

Outcome Engine::end_step() {
  if (fork_count() != fork_count_) return tl::unexpected(inherited_by_fork());
  const Lock lock(mutex_);
  // Most steps have ended by themselves when the program says so.
  if (agreement_.prediction().is_between_steps()) return {};
  ++steps_;
  if (is_asleep_) bells_->ring_own();
  return {};
}

Engine::Counts Engine::counts() const {
  const Lock lock(mutex_);
  return counts_;
}

bool Engine::is_idle() const {
  const Lock lock(mutex_);
  return waiters_ == 0 && !is_calling_back();
}

// Which call comes next.

Engine::NextCall Engine::next_call() {
  if (broken_) return NextCall::kNone;
  if (must_agree_) return NextCall::kAgree;
  if (!has_work()) return NextCall::kNone;
  // Another call than that of the rank that wants to agree would only be compared with it.
  if (bells_->is_wanted(calls_ + 1)) return NextCall::kAgree;
  if (agreement_.agreed() != nullptr) return is_overtaken() ? NextCall::kAgree : NextCall::kAgreed;
  if (is_predicted_here()) return has_overtaking() ? NextCall::kAgree : NextCall::kPredicted;
  // After an abort, or without a rank that has left, a call fails, and so do the open tensors.
  const bool is_called = connections_.abort().is_raised() ||
                         connections_.segment().twin().abort_line().departures.load() != 0 ||
                         (twin_ != nullptr && (twin_->abort().is_raised() || twin_->first_left()));
  return has_news() || is_called ? NextCall::kAgree : NextCall::kNone;
}

bool Engine::is_overtaken() const {
  return std::any_of(unannounced_.begin(), unannounced_.end(), [this](const SubmissionPtr& submission) {
    return submission->terms().priority > agreement_.agreed()->priority();
  });
}

bool Engine::is_predicted_here() {
  const Prediction& prediction = agreement_.prediction();
  if (version_ != prediction.version()) {
    version_ = prediction.version();
    ready_ = 0;
    unexpected_ = static_cast<std::size_t>(
        std::count_if(unannounced_.begin(), unannounced_.end(), [&](const SubmissionPtr& submission) {
          return prediction.place_of(submission->name(), submission->terms()) ==
                 Prediction::Place::kUnexpected;
        }));
  }
  const Batch* const batch = agreement_.predicted();
  if (batch == nullptr || is_quiet_ || joining_ != nullptr) return false;
  for (; ready_ < batch->tensors.size(); ++ready_) {
    const AgreedTensor& tensor = *batch->tensors[ready_];
    const auto found = open_.find(tensor.name);
    if (found == open_.end() || found->second->terms() != tensor.terms) return false;
  }
  return true;
}

bool Engine::has_overtaking() const {
  return std::any_of(unannounced_.begin(), unannounced_.end(), [this](const SubmissionPtr& submission) {
    const Batch* const batch = agreement_.prediction().overtaking(submission->name(), submission->terms());
    return batch != nullptr &&
           std::all_of(batch->tensors.begin(), batch->tensors.end(),
                       [this](const AgreedTensorPtr& tensor) { return open_.contains(tensor->name); });
  });
}

bool Engine::has_news() const {
  if (joining_ != nullptr && !has_announced_join_) return true;
  if (is_quiet_) return !unannounced_.empty() || steps_ != announced_steps_;
  // The prediction does not lead to what the program waits for, or one of the others waits so.
  return unexpected_ > 0 || wanted_ > 0 || steps_ != announced_steps_ || has_lost_patience();
}

bool Engine::has_lost_patience() const {
  return !unannounced_.empty() && unannounced_.front()->patience.has_passed();
}

// Driving.

template <class Done>
void Engine::drive_until(Lock& lock, Done done) {
  if (done()) return;
  const bool may_call = may_call_here();
  ++waiters_;
  show_waiters();
  if (may_call) ++able_waiters_;
  // A thread that may not make calls gives way.
  if (may_call && !any_may_call_ && is_asleep_) bells_->ring_own();
  Interruption interruption;
  while (!done()) {
    if (is_driven_ || (!may_call && able_waiters_ > 0)) {
      const bool by_signal = changed_.wait(lock, interruption.limit(Deadline::never()));
      look_for_interruption(lock, interruption, by_signal);
    } else {
      drive(lock, may_call, interruption);
    }
  }
  --waiters_;
  show_waiters();
  if (may_call) --able_waiters_;
  // Another thread goes on.
  if (!is_driven_ && has_work()) {
    if (waiters_ > 0) {
      changed_.notify_all();
    } else {
      has_work_.notify_one();
    }
  }
}

void Engine::show_waiters() const {
  if (shown_ != nullptr)
    shown_->waiters.store(static_cast<std::uint32_t>(waiters_), std::memory_order_relaxed);
}

void Engine::drive(Lock& lock, bool may_call, Interruption& interruption) {
  is_driven_ = true;
  const std::uint32_t heard = bells_->heard();
  if (!may_call && connections_.abort().is_raised() && !broken_) {
    lock.unlock();
    const Failure failure = aborted();
    job_.on_failure(&connections_.abort());
    lock.lock();
    complete_all(is_closing_ ? has_left() : failure, lock);
  } else if (const NextCall call = may_call ? next_call() : NextCall::kNone; call != NextCall::kNone) {
    if (auto made = try_to_make(call, lock); !made) {
      if (made.error().status == DDL_ERROR_MISMATCH) {
        must_agree_ = true;
      } else {
        complete_all(is_closing_ ? has_left() : made.error(), lock);
      }
    }
  } else {
    pass(CallKind::kAgree, FaultPoint::kBeforeSleep);
    is_asleep_ = true;
    const Deadline limit = may_call ? sleep_limit() : Deadline::never();
    lock.unlock();
    const bool by_signal = bells_->sleep(heard, interruption.limit(limit));
    lock.lock();
    is_asleep_ = false;
    look_for_interruption(lock, interruption, by_signal);
  }
  is_driven_ = false;
  if (waiters_ > 0 || is_closing_) changed_.notify_all();
}

void Engine::look_for_interruption(Lock& lock, Interruption& interruption, bool by_signal) {
  if (!interruption.has_news(by_signal)) return;
  // The program's handlers run here, and may take long.
  lock.unlock();
  if (interruption.is_wanted(by_signal)) {
    Connections& connections = twin_ != nullptr ? *twin_ : connections_;
    connections.abort().raise(AbortNotice::of(AbortReason::kInterrupted, connections_.self()));
    connections.report_abort();
  }
  lock.lock();
}

Deadline Engine::sleep_limit() const {
  return is_quiet_ || unannounced_.empty() ? Deadline::never() : unannounced_.front()->patience;
}

void Engine::close() {
  Lock lock(mutex_);
  if (is_closing_) return;
  is_closing_ = true;
  // A callback may run on the driving thread: it is in no call then, and nobody waits for this rank.
  changed_.wait(lock, [this] { return calling_back_ == std::thread::id(); });
  if (is_driven_ && !is_asleep_ && !broken_ && size_ > 1) {
    // The driving thread is inside a call, or connects, and may wait for others there. Between calls, leaving in order
    // is enough: ranks that need this one notice that it has left. Alone, nobody is waited for, and an abort of a process
    // set would be one of the world.
    const AbortDomain& domain = twin_ != nullptr ? twin_->abort() : connections_.abort();
    domain.raise(AbortCause{AbortCause::Where::kLeft, connections_.channel().index()});
  }
  if (is_asleep_) bells_->ring_own();
  changed_.wait(lock, [this] { return !is_driven_; });
  complete_all(has_left(), lock);
  is_closed_ = true;
  has_work_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  backend_.reset();
}

// The engine's own thread.

void Engine::start_thread() {
  // Without one, threads that wait make progress.
  if (auto thread = start_own_thread("ddl-tensors", [this] { run(); })) thread_ = *std::move(thread);
}

void Engine::run() {
  Lock lock(mutex_);
  while (!is_closing_) {
    if (habit_.is_there()) {
      const std::uint64_t tensors = habit_.tensors();
      has_work_.wait_for(lock, WaitingHabit::kLook);
      if (tensors == habit_.tensors()) habit_.end();
    } else if (is_driven_ || !has_work() || broken_ || (!any_may_call_ && able_waiters_ > 0)) {
      has_work_.wait(lock);
    } else {
      Interruption none;  // this thread handles no signals
      drive(lock, any_may_call_, none);
    }
  }
}

}  // namespace ddl::runtime
