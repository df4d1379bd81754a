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
  return fail(DDL_ERROR_INVALID_ARGUMENT,
              "a callback cannot wait: no tensor of the process set makes progress before it returns");
}

}  // namespace

Engine::Engine(JobResources& job, Connections& connections, CollectiveBackend& first,
               Prediction::Limits limits, contract::SetRecord* record)
    : job_(job),
      set_connections_(connections),
      first_(first),
      any_may_call_(first.allows_own_threads()),
      record_(record),
      fork_count_(fork_count()),
      patience_(job.settings.batch_patience),
      doorbells_(connections.segment().duplicate(), connections.channel().index()),
      tally_(job.record, CallTier::kNamed),
      agreement_(labels_of(connections), limits) {}

// What the program does.

Outcome Engine::check_open() const {
  if (life_ != Life::kOpen) return fail(DDL_ERROR_INVALID_ARGUMENT, "this process set has been left");
  if (phase_ == Phase::kBroken)
    return fail(DDL_ERROR_ABORTED, "the context was aborted earlier: " + failure_.message);
  return {};
}

Outcome Engine::submit(const std::vector<SubmissionPtr>& submissions) {
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  const Lock lock(mutex_);
  if (auto open = check_open(); !open) return open;
  if (joining_ != nullptr) {
    return fail(DDL_ERROR_INVALID_ARGUMENT,
                "this rank has joined: it submits no tensors until all ranks have");
  }
  std::unordered_set<std::string_view> names;
  for (const SubmissionPtr& submission : submissions) {
    if (names.insert(submission->name()).second && !open_.contains(submission->name())) continue;
    return fail(DDL_ERROR_INVALID_ARGUMENT, "a tensor with the name \"" + submission->name() +
                                                "\" has been submitted before, and is not complete");
  }
  const bool had_work = has_work(), had_unannounced = open_.has_unannounced();
  const bool ends_blocking_use = blocking_use_.submitted(!had_work && submissions.size() == 1);
  const Deadline patience = Deadline::after(patience_);
  open_.add(submissions, agreement_.prediction());
  for (const SubmissionPtr& submission : submissions) {
    submission->announcement.follows_completion = std::exchange(saw_completion_, false);
    submission->patience = patience;
    if (record_ != nullptr) submission->record_place = job_.record->add_tensor(*record_, submission->name());
    submission->logged = log_submission(*submission);
  }
  if (!thread_.joinable()) {
    // Without one, threads that wait make progress.
    if (auto thread = start_own_thread("ddl-tensors", [this] { run(); })) thread_ = *std::move(thread);
  }
  pass(CallKind::kAgree, FaultPoint::kAfterSubmission);
  // The first tensor that is not announced limits a sleep.
  wake_driver(!had_unannounced);
  wake_own_thread(!had_work || ends_blocking_use);
  return {};
}

void Engine::note_wait(LoggedInterval& wait) {
  const std::int64_t ended = wait.end();
  if (ended != 0 && job_.record)
    job_.record->add_tensor_wait(static_cast<std::uint64_t>(ended - wait.began()));
}

Outcome Engine::wait(Submission& submission) {
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  Lock lock(mutex_);
  if (!submission.is_complete() && is_calling_back()) return waits_in_callback();
  // Its thread no longer waits to be woken for the next tensors.
  if (blocking_use_.waited(submission.patience.when() - patience_)) has_work_.notify_one();
  if (open_.want(submission)) wake_driver(false);
  if (!submission.is_complete()) {
    LoggedInterval logged(events(), event_of_engine(contract::Event::Kind::kWait), submission.name());
    drive_until(lock, [&] { return submission.is_complete(); });
    note_wait(logged);
  }
  saw_completion_ = true;
  return submission.outcome;
}

tl::expected<bool, Failure> Engine::test(Submission& submission) {
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  // A program that tests again and again would have the lock and a CPU most of the time, and the thread that makes the
  // tensor's call would hardly get either.
  if (submission.is_wanted.load(std::memory_order_relaxed) && !submission.is_complete()) {
    ::sched_yield();
    return false;  // what completes now is noticed by the next test, under the lock
  }
  const Lock lock(mutex_);
  if (open_.want(submission)) wake_driver(false);
  const bool ends_blocking_use = blocking_use_.end();
  if (submission.is_complete()) {
    saw_completion_ = true;
  } else {
    wake_own_thread(ends_blocking_use);
  }
  return submission.is_complete();
}

Outcome Engine::join(int& last) {
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  Lock lock(mutex_);
  if (is_calling_back()) return waits_in_callback();
  if (auto open = check_open(); !open) return open;
  if (joining_ != nullptr) return fail(DDL_ERROR_BUSY, "another thread of this rank has joined");
  // Another thread may join again before this one goes on.
  const auto joined = std::make_shared<std::optional<int>>();
  joining_ = joined;
  if (record_ != nullptr) record_->has_joined = 1;
  wake_driver();
  // What the last round has found ready is executed with this rank, too, which may leave or sleep after this.
  {
    LoggedInterval logged(events(), event_of_engine(contract::Event::Kind::kWait), "ddl_join");
    drive_until(lock,
                [&] { return phase_ == Phase::kBroken || (*joined && agreement_.agreed() == nullptr); });
    note_wait(logged);
  }
  if (joining_ == joined) joining_ = nullptr;
  if (!*joined) return fail(failure_);
  last = **joined;
  return {};
}

Outcome Engine::end_step() {
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  const Lock lock(mutex_);
  // Most steps have ended by themselves when the program says so.
  if (agreement_.prediction().is_between_steps()) return {};
  ++steps_;
  wake_driver();
  return {};
}

Engine::Counts Engine::counts() const {
  const Lock lock(mutex_);
  return counts_;
}

std::optional<std::string> Engine::open_tensor() const {
  const Lock lock(mutex_);
  return open_.empty() ? std::nullopt : std::optional(open_.any()->name());
}

bool Engine::is_idle() const {
  const Lock lock(mutex_);
  return waiters_ == 0 && !is_calling_back();
}

// Which call comes next.

bool Engine::holds(Fact fact) {
  const Connections& set = set_connections_;
  switch (fact) {
    case Fact::kAlways: return true;
    case Fact::kNoWork: return !has_work();
    case Fact::kPeerAsks: return doorbells_.is_wanted(counts_.all() + 1);
    case Fact::kOvertaken: return open_.overtakes(agreement_);
    case Fact::kAgreed: return agreement_.agreed() != nullptr;
    case Fact::kJoins: return joining_ != nullptr && !agreement_.has_joined(rank());
    case Fact::kPredicted: return open_.has_predicted(agreement_);
    case Fact::kImpatient: return open_.is_impatient(agreement_);
    case Fact::kUnannounced: return open_.has_unannounced();
    case Fact::kStepEnded: return steps_ != agreement_.steps_of(rank());
    case Fact::kSetEnds:
      return set.abort().is_raised() || set.segment().duplicate().abort_line().any_left.load() != 0 ||
             (own_connections_ != nullptr &&
              (own_connections_->abort().is_raised() || own_connections_->first_left()));
  }
  return false;
}

// Driving.

template <class Done>
void Engine::drive_until(Lock& lock, Done done) {
  if (done()) return;
  const bool may_call = any_may_call_ || first_.allows_call().has_value();
  count_waiter(1, may_call);
  // A thread that may not make calls lets this one drive.
  if (may_call && !any_may_call_) wake_driver();
  Interruption interruption;
  while (!done()) {
    if (driver_ != Driver::kNone || (!may_call && able_waiters_ > 0)) {
      const bool by_signal = changed_.wait(lock, interruption.limit(Deadline::never()));
      look_for_interruption(lock, interruption, by_signal);
    } else {
      drive(lock, may_call, interruption);
    }
  }
  count_waiter(-1, may_call);
  // Another thread goes on.
  if (driver_ != Driver::kNone || !has_work()) return;
  if (waiters_ > 0) {
    changed_.notify_all();
  } else {
    has_work_.notify_one();
  }
}

void Engine::count_waiter(int change, bool may_call) {
  waiters_ += change;
  if (may_call) able_waiters_ += change;
  if (record_ != nullptr)
    record_->waiters.store(static_cast<std::uint32_t>(waiters_), std::memory_order_relaxed);
}

void Engine::wake_driver(bool has_other_reason) {
  if (driver_ == Driver::kSleeps && (has_other_reason || next_call() != NextCall::kNone))
    doorbells_.ring_own();
}

void Engine::wake_own_thread(bool has_other_reason) {
  if (driver_ == Driver::kNone && !blocking_use_.is_there() &&
      (has_other_reason || next_call() != NextCall::kNone))
    has_work_.notify_one();
}

void Engine::drive(Lock& lock, bool may_call, Interruption& interruption) {
  driver_ = Driver::kCalls;
  const std::uint32_t heard = doorbells_.heard();
  if (!may_call && set_connections_.abort().is_raised() && phase_ != Phase::kBroken) {
    lock.unlock();
    Failure failure = aborted();
    job_.on_failure(&set_connections_.abort());
    lock.lock();
    fail_all(std::move(failure), lock);
  } else if (const NextCall call = may_call ? next_call() : NextCall::kNone; call != NextCall::kNone) {
    if (auto made = make(call, lock); !made) {
      if (made.error().status == DDL_ERROR_MISMATCH) {
        phase_ = Phase::kDiffering;
      } else {
        fail_all(std::move(made).error(), lock);
      }
    }
  } else {
    pass(CallKind::kAgree, FaultPoint::kBeforeSleep);
    driver_ = Driver::kSleeps;
    const Deadline limit = may_call && phase_ != Phase::kQuiet ? open_.patience() : Deadline::never();
    lock.unlock();
    const bool by_signal = doorbells_.sleep(heard, interruption.limit(limit));
    lock.lock();
    driver_ = Driver::kCalls;
    look_for_interruption(lock, interruption, by_signal);
  }
  driver_ = Driver::kNone;
  if (waiters_ > 0 || life_ != Life::kOpen) changed_.notify_all();
}

void Engine::look_for_interruption(Lock& lock, Interruption& interruption, bool by_signal) {
  if (!interruption.has_news(by_signal)) return;
  // The program's handlers run here, and may take long.
  lock.unlock();
  if (interruption.is_wanted(by_signal)) {
    connections().abort().raise(AbortNotice::of(AbortReason::kInterrupted, set_connections_.self()));
    connections().report_abort();
  }
  lock.lock();
}

void Engine::close() {
  Lock lock(mutex_);
  if (life_ != Life::kOpen) return;
  life_ = Life::kClosing;
  // A callback may run on the driving thread: it is in no call then, and nobody waits for this rank.
  changed_.wait(lock, [this] { return calling_back_ == std::thread::id(); });
  if (driver_ == Driver::kCalls && phase_ != Phase::kBroken && set_connections_.membership().size > 1) {
    // The driving thread is inside a call, or connects, and may wait for others there. Between calls, leaving in order
    // is enough: ranks that need this one notice that it has left. Alone, nobody is waited for, and an abort of a
    // process set would be one of the world.
    connections().abort().raise(AbortCause{AbortCause::Where::kLeft, set_connections_.channel().index()});
  }
  wake_driver();
  changed_.wait(lock, [this] { return driver_ == Driver::kNone; });
  fail_all({}, lock);
  life_ = Life::kClosed;
  has_work_.notify_all();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  tally_.show();
  backend_.reset();
}

// The engine's own thread.

void Engine::run() {
  Lock lock(mutex_);
  while (life_ == Life::kOpen) {
    if (blocking_use_.is_there()) {
      const std::uint64_t submissions = blocking_use_.submissions();
      has_work_.wait_for(lock, BlockingUse::kLook);
      if (submissions == blocking_use_.submissions()) blocking_use_.end();
    } else if (driver_ != Driver::kNone || !has_work() || phase_ == Phase::kBroken ||
               (!any_may_call_ && able_waiters_ > 0)) {
      has_work_.wait(lock);
    } else {
      Interruption none;  // this thread handles no signals
      drive(lock, any_may_call_, none);
    }
  }
}

}  // namespace ddl::runtime
