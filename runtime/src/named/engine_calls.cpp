// The calls of an engine: connecting, rounds of agreement, batches, and the completion of their tensors.
#include <algorithm>
#include <exception>
#include <new>

#include "runtime/src/named/batch_call.h"
#include "runtime/src/named/engine.h"

namespace ddl::runtime {
namespace {

/// Throws nothing: without memory for the message, it has the status alone.
Failure failure_of(ddl_status status, const char* message) {
  try {
    return {status, message};
  } catch (const std::bad_alloc&) {
    return {status, {}};
  }
}

}  // namespace

// What is recorded.

contract::Event Engine::event_of_engine(contract::Event::Kind kind, const Call& call) const {
  contract::Event event = event_of(call, call.count * element_size(call.dtype));
  event.kind = kind;
  event.generation = set_connections_.membership().generation;
  event.call = counts_.all();
  return event;
}

std::uint64_t Engine::log_submission(const Submission& submission) const {
  if (events() == nullptr) return 0;
  Call call = submission.terms().call;
  if (call.kind == CallKind::kAllgatherv) call.count = submission.own_count;
  return events()->begin(event_of_engine(contract::Event::Kind::kTensor, call), submission.name());
}

void Engine::log_steps() {
  if (events() == nullptr) return;
  for (; logged_steps_ < agreement_.prediction().steps(); ++logged_steps_)
    events()->end_step(set_connections_.membership().generation);
}

Outcome Engine::make(NextCall call, Lock& lock) try {
  const Batch* const batch = call == NextCall::kRound ? nullptr : agreement_.next();
  const CallKind kind = batch == nullptr ? CallKind::kAgree : batch->tensors.front()->terms.call.kind;
  const RecordedCall recorded(record_ == nullptr ? nullptr : &record_->named_call, kind, counts_.all() + 1);
  if (own_connections_ == nullptr) {
    if (auto connected = connect(lock); !connected) return connected;
  }
  Outcome outcome = batch == nullptr ? agree(lock) : execute(*batch, lock);
  if (outcome || outcome.error().status == DDL_ERROR_MISMATCH) return outcome;
  lock.unlock();
  own_connections_->report_abort();
  // Another rank may have ended the set for another reason at the same time: calls of both kinds report the first one.
  const AbortDomain& abort = set_connections_.abort();
  if (abort.is_raised()) outcome = fail(abort.describe(own_connections_->channel().call(), true));
  job_.on_failure(&abort);
  lock.lock();
  return outcome;
} catch (const std::bad_alloc&) {
  return give_up(DDL_ERROR_SYSTEM, "out of memory", lock);
} catch (const std::exception& error) {
  return give_up(DDL_ERROR_INTERNAL, error.what(), lock);
} catch (...) {
  return give_up(DDL_ERROR_INTERNAL, "an unknown exception", lock);
}

Outcome Engine::give_up(ddl_status status, const char* why, Lock& lock) {
  if (lock.owns_lock()) lock.unlock();
  Outcome outcome = fail(failure_of(status, why));
  // The notice needs no memory, and the other ranks learn why this one makes no further calls.
  try {
    const Member& self = set_connections_.self();
    connections().abort().raise(AbortNotice{AbortReason::kFailed, self.rank, self.pid, 0,
                                            HostField::of(self.host), TextField<432>::of(why)});
    connections().report_abort();
    job_.on_failure(&set_connections_.abort());
  } catch (const std::exception&) {
    // What could be done has been done.
  }
  lock.lock();
  return outcome;
}

Outcome Engine::connect(Lock& lock) {
  lock.unlock();
  auto connected = set_connections_.connect_duplicate(CallDeadline::after(job_.settings.timeout_seconds));
  lock.lock();
  if (!connected && set_connections_.abort().is_raised()) return fail(aborted());
  if (!connected) return fail(to_failure(connected.error()));
  own_connections_ = *connected;
  backend_ = first_.make_duplicate(**connected);
  return {};
}

Failure Engine::aborted() const {
  return set_connections_.abort().describe(Call{.kind = CallKind::kAgree}, true);
}

// Calls.

Outcome Engine::agree(Lock& lock) {
  ++counts_.rounds;
  const std::uint32_t number = counts_.all();
  LoggedInterval logged(events(), event_of_engine(contract::Event::Kind::kAgreement));
  lock.unlock();
  own_connections_->want_to_agree(number);
  Request begin;
  begin.call.kind = CallKind::kAgree;
  Outcome begun = backend_->run(begin, CallDeadline::after(job_.settings.timeout_seconds));
  lock.lock();
  if (!begun) return begun;

  // All are here now, and what has been submitted meanwhile is announced, too.
  Frame own;
  own.announcements = open_.announce();
  own.has_joined = joining_ != nullptr;
  own.steps = steps_;
  own.fusion_bytes = job_.settings.fusion_bytes;
  lock.unlock();
  const auto frames =
      exchange_frames(*backend_, own, set_connections_.membership().size, job_.settings.timeout_seconds);
  lock.lock();
  if (!frames) return fail(frames.error());
  const Agreement::Round round = agreement_.add_round(*frames);
  log_steps();
  pass(CallKind::kAgree, FaultPoint::kAfterRound);
  phase_ = round.has_news ? Phase::kPredicting : Phase::kQuiet;
  if (round.last_joined) {
    if (joining_ != nullptr) *joining_ = round.last_joined;
    joining_ = nullptr;
    if (record_ != nullptr) record_->has_joined = 0;
  }
  if (logged.began() != 0) tally_.add(CallKind::kAgree, 0, logged.began(), logged.end());
  return {};
}

Outcome Engine::execute(const Batch& next, Lock& lock) {
  ++(agreement_.agreed() != nullptr ? counts_.agreed : counts_.predicted);
  const Batch batch = next;
  const std::vector<SubmissionPtr> submissions = open_.of(batch, rank());
  Outcome outcome;
  if (batch.failure) {
    outcome = fail(DDL_ERROR_MISMATCH, *batch.failure);
  } else {
    lock.unlock();
    outcome = execute_logged(batch, submissions);
    lock.lock();
    if (!outcome) return outcome;
    pass(batch.tensors.front()->terms.call.kind, FaultPoint::kAfterBatch);
  }
  agreement_.executed();
  log_steps();
  if (batch.is_last()) {
    complete(submissions, outcome, lock);
  } else {
    open_.set_announced(submissions);
  }
  return {};
}

Outcome Engine::execute_logged(const Batch& batch, const std::vector<SubmissionPtr>& submissions) {
  const auto run = [&] {
    return runtime::execute(*backend_, job_, set_connections_.membership(), batch, submissions);
  };
  EventLog* const log = job_.events.get();
  if (log == nullptr) return run();
  Call call = batch.tensors.front()->terms.call;
  call.count = batch.count;
  contract::Event event = event_of_engine(contract::Event::Kind::kBatch, call);
  event.begin = log->now();
  event.tensors = static_cast<std::uint32_t>(batch.tensors.size());
  for (const AgreedTensorPtr& tensor : batch.tensors)
    event.bytes += batch.count == 0 ? tensor->terms.bytes() : 0;
  for (const SubmissionPtr& submission : submissions) {
    if (batch.first == 0) log->start(submission->logged, event.begin);
  }
  LoggedInterval logged(log, event, batch.tensors.front()->name);
  Outcome outcome = run();
  logged.set(outcome ? DDL_OK : outcome.error().status,
             static_cast<std::uint8_t>(own_connections_->channel().path()));
  tally_.add(call.kind, event.bytes, event.begin, logged.end());
  return outcome;
}

// Completion.

void Engine::complete(std::span<const SubmissionPtr> submissions, const Outcome& outcome, Lock& lock) {
  open_.remove(submissions);
  bool calls_back = false;
  EventLog* const log = events();
  const std::int64_t now = log == nullptr ? 0 : log->now();
  for (const SubmissionPtr& submission : submissions) {
    if (log != nullptr) log->end(submission->logged, now, outcome ? DDL_OK : outcome.error().status);
    if (record_ != nullptr) job_.record->remove_tensor(submission->record_place);
    if (!outcome)
      submission->outcome = fail(failure_of(outcome.error().status, outcome.error().message.c_str()));
    calls_back = calls_back || submission->on_completion;
    if (!submission->on_completion) submission->phase = Submission::Phase::kComplete;
  }
  if (waiters_ > 0) changed_.notify_all();
  if (!calls_back) return;
  saw_completion_ = true;
  calling_back_ = std::this_thread::get_id();
  lock.unlock();
  std::exception_ptr thrown;
  for (const SubmissionPtr& submission : submissions) {
    try {
      if (submission->on_completion) submission->on_completion(outcome);
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  lock.lock();
  calling_back_ = {};
  for (const SubmissionPtr& submission : submissions) submission->phase = Submission::Phase::kComplete;
  if (waiters_ > 0 || life_ != Life::kOpen) changed_.notify_all();
  if (thrown) std::rethrow_exception(thrown);
}

void Engine::fail_all(Failure failure, Lock& lock) {
  phase_ = Phase::kBroken;
  failure_ =
      life_ == Life::kOpen
          ? std::move(failure)
          : failure_of(DDL_ERROR_ABORTED, "this rank left the process set before the tensor was complete");
  const Outcome outcome = fail(failure_of(failure_.status, failure_.message.c_str()));
  open_.set_all_announced();
  while (!open_.empty()) {
    const SubmissionPtr submission = open_.any();
    try {
      complete({&submission, 1}, outcome, lock);
    } catch (...) {
      // Of its callback: the set has ended already.
    }
  }
}

}  // namespace ddl::runtime
