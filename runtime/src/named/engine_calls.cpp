// The calls of an engine: connecting, rounds of agreement, batches, and the completion of what they carry out.
#include <algorithm>
#include <exception>
#include <new>

#include "runtime/src/named/batch_call.h"
#include "runtime/src/named/engine.h"
#include "runtime/src/named/frame_exchange.h"

namespace ddl::runtime {

// What is recorded.

contract::Event Engine::event_of_engine(contract::Event::Kind kind, const Call& call) const {
  contract::Event event = event_of(call, call.count * element_size(call.dtype));
  event.kind = kind;
  event.generation = connections_.membership().generation;
  event.call = calls_;
  return event;
}

std::uint64_t Engine::log_submission(const Submission& submission) const {
  if (events() == nullptr) return 0;
  Call call = submission.terms().call;
  if (call.kind == CallKind::kAllgatherv) call.count = submission.own_count;
  return events()->begin(event_of_engine(contract::Event::Kind::kTensor, call), submission.name());
}

void Engine::log_end(const std::vector<SubmissionPtr>& submissions, const Outcome& outcome) const {
  if (events() == nullptr) return;
  const std::int64_t now = events()->now();
  for (const SubmissionPtr& submission : submissions)
    events()->end(submission->logged, now, outcome ? DDL_OK : outcome.error().status);
}

void Engine::log_steps() {
  if (events() == nullptr) return;
  for (; logged_steps_ < agreement_.prediction().steps(); ++logged_steps_)
    events()->end_step(connections_.membership().generation);
}

Outcome Engine::make(NextCall call, Lock& lock) {
  const Batch* const batch = call == NextCall::kAgreed      ? agreement_.agreed()
                             : call == NextCall::kPredicted ? agreement_.predicted()
                                                            : nullptr;
  const CallKind kind = batch == nullptr ? CallKind::kAgree : batch->tensors.front()->terms.call.kind;
  const ShownCall shown(shown_ == nullptr ? nullptr : &shown_->named_call, kind, calls_ + 1);
  if (twin_ == nullptr) {
    if (auto connected = connect(lock); !connected) return connected;
  }
  ++calls_;
  Outcome outcome;
  switch (call) {
    case NextCall::kAgree:
      ++counts_.rounds;
      outcome = agree(lock);
      break;
    case NextCall::kAgreed:
      ++counts_.agreed;
      outcome = carry_out_agreed(lock);
      break;
    case NextCall::kPredicted:
      ++counts_.predicted;
      outcome = carry_out_predicted(lock);
      break;
    case NextCall::kNone: break;
  }
  if (outcome || outcome.error().status == DDL_ERROR_MISMATCH) return outcome;
  lock.unlock();
  twin_->report_abort();
  // Another rank may have ended the set for another reason at the same time: calls of both kinds report the first one.
  if (connections_.abort().is_raised())
    outcome = tl::unexpected(connections_.abort().describe(twin_->channel().call(), true));
  job_.on_failure(&connections_.abort());
  lock.lock();
  return outcome;
}

Outcome Engine::try_to_make(NextCall call, Lock& lock) {
  try {
    return make(call, lock);
  } catch (const std::bad_alloc&) {
    return give_up(DDL_ERROR_SYSTEM, "out of memory", lock);
  } catch (const std::exception& error) {
    return give_up(DDL_ERROR_INTERNAL, error.what(), lock);
  } catch (...) {
    return give_up(DDL_ERROR_INTERNAL, "an unknown exception", lock);
  }
}

Outcome Engine::give_up(ddl_status status, const char* why, Lock& lock) {
  if (lock.owns_lock()) lock.unlock();
  // The notice needs no memory, and the other ranks learn why this one makes no further calls.
  Connections& connections = twin_ != nullptr ? *twin_ : connections_;
  Outcome outcome = tl::unexpected<Failure>(Failure{status, {}});
  try {
    const Member& self = connections_.self();
    connections.abort().raise(AbortNotice{AbortReason::kFailed, self.rank, self.pid, 0,
                                          HostField::of(self.host), TextField<432>::of(why)});
    connections.report_abort();
    outcome.error().message = why;
    job_.on_failure(&connections_.abort());
  } catch (const std::exception&) {
    // What could be done has been done.
  }
  lock.lock();
  return outcome;
}

Outcome Engine::connect(Lock& lock) {
  lock.unlock();
  auto twin = connections_.connect_twin(CallDeadline::after(job_.settings.timeout_seconds));
  lock.lock();
  if (!twin && connections_.abort().is_raised()) return tl::unexpected(aborted());
  if (!twin) return tl::unexpected(to_failure(twin.error()));
  twin_ = *twin;
  backend_ = first_.make_twin(**twin);
  return {};
}

Failure Engine::aborted() const {
  Call call;
  call.kind = CallKind::kAgree;
  return connections_.abort().describe(call, true);
}

// Calls.

Outcome Engine::agree(Lock& lock) {
  const std::uint32_t number = calls_;
  const LoggedInterval logged(events(), event_of_engine(contract::Event::Kind::kAgreement));
  lock.unlock();
  twin_->want_to_agree(number);
  Request begin;
  begin.call.kind = CallKind::kAgree;
  Outcome begun = backend_->run(begin, CallDeadline::after(job_.settings.timeout_seconds));
  lock.lock();
  if (!begun) return begun;

  // All are here now, and what has been handed over meanwhile is announced, too.
  Frame own;
  for (const SubmissionPtr& submission : unannounced_) own.announcements.push_back(submission->announcement);
  unannounced_.clear();
  unexpected_ = 0;
  own.has_joined = has_announced_join_ = joining_ != nullptr;
  own.steps = announced_steps_ = steps_;
  own.fusion_bytes = job_.settings.fusion_bytes;
  lock.unlock();
  const auto frames = exchange_frames(*backend_, own, size_, job_.settings.timeout_seconds);
  lock.lock();
  if (!frames) return tl::unexpected(frames.error());
  const Agreement::Round round = agreement_.add_round(*frames);
  log_steps();
  pass(CallKind::kAgree, FaultPoint::kAfterRound);
  must_agree_ = false;
  is_quiet_ = !round.has_news;
  if (round.last_joined) {
    if (joining_ != nullptr) *joining_ = round.last_joined;
    joining_ = nullptr;
    has_announced_join_ = false;
    if (shown_ != nullptr) shown_->has_joined = 0;
  }
  return {};
}

std::vector<SubmissionPtr> Engine::submissions_of(const Batch& batch) const {
  std::vector<SubmissionPtr> submissions;
  // A rank that had joined may have handed over a tensor of the same name since.
  if (!batch.gives.empty() && batch.gives[static_cast<std::size_t>(rank_)] == 0) return submissions;
  for (const AgreedTensorPtr& tensor : batch.tensors) {
    if (const auto found = open_.find(tensor->name); found != open_.end())
      submissions.push_back(found->second);
  }
  return submissions;
}

Outcome Engine::carry_out_logged(const Batch& batch, const std::vector<SubmissionPtr>& submissions) {
  const BatchCaller caller{*backend_, *job_.heap, job_.device_memory,
                           rank_,     size_,      job_.settings.timeout_seconds};
  EventLog* const log = job_.events.get();
  if (log == nullptr) return carry_out(caller, batch, submissions);
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
  Outcome outcome = carry_out(caller, batch, submissions);
  logged.set(outcome ? DDL_OK : outcome.error().status, static_cast<std::uint8_t>(twin_->channel().way()));
  return outcome;
}

Outcome Engine::carry_out_agreed(Lock& lock) {
  const Batch batch = *agreement_.agreed();
  const std::vector<SubmissionPtr> submissions = submissions_of(batch);
  Outcome outcome;
  if (batch.failure) {
    outcome = failed(DDL_ERROR_MISMATCH, *batch.failure);
  } else {
    lock.unlock();
    outcome = carry_out_logged(batch, submissions);
    lock.lock();
    if (!outcome) return outcome;
    pass(batch.tensors.front()->terms.call.kind, FaultPoint::kAfterBatch);
  }
  agreement_.carried_out_agreed();
  log_steps();
  if (batch.is_last()) complete(submissions, outcome, lock);
  return {};
}

Outcome Engine::carry_out_predicted(Lock& lock) {
  const Batch batch = *agreement_.predicted();
  const std::vector<SubmissionPtr> submissions = submissions_of(batch);
  lock.unlock();
  Outcome outcome = carry_out_logged(batch, submissions);
  lock.lock();
  if (!outcome) return outcome;
  pass(batch.tensors.front()->terms.call.kind, FaultPoint::kAfterBatch);
  agreement_.carried_out_predicted();
  log_steps();
  if (!batch.is_last()) {
    // The others know of the tensor, as they have begun it, too.
    std::erase(unannounced_, submissions.front());
    return {};
  }
  complete(submissions, outcome, lock);
  return {};
}

// Completion.

void Engine::complete(const std::vector<SubmissionPtr>& submissions, const Outcome& outcome, Lock& lock) {
  // A tensor that fails leaves the batch that is expected without changing it.
  ready_ = 0;
  log_end(submissions, outcome);
  bool calls_back = false;
  // What needs memory comes first: a tensor is open until then.
  for (const SubmissionPtr& submission : submissions) submission->outcome = outcome;
  for (const SubmissionPtr& submission : submissions) {
    open_.erase(submission->name());
    if (submission->is_wanted) --wanted_;
    submission->is_open = false;
    if (shown_ != nullptr) job_.record->remove_tensor(submission->shown);
    submission->is_complete = !submission->on_completion;
    calls_back = calls_back || submission->on_completion;
  }
  std::erase_if(unannounced_, [](const SubmissionPtr& submission) { return !submission->is_open; });
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
  for (const SubmissionPtr& submission : submissions) submission->is_complete = true;
  if (waiters_ > 0 || is_closing_) changed_.notify_all();
  if (thrown) std::rethrow_exception(thrown);
}

void Engine::complete_all(const Failure& failure, Lock& lock) {
  const auto copy = [&failure]() -> Failure {
    try {
      return failure;
    } catch (const std::bad_alloc&) {
      return {failure.status, {}};
    }
  };
  broken_ = copy();
  unannounced_.clear();
  while (!open_.empty()) {
    const SubmissionPtr submission = std::move(open_.begin()->second);
    open_.erase(open_.begin());
    if (submission->is_wanted) --wanted_;
    submission->is_open = false;
    if (shown_ != nullptr) job_.record->remove_tensor(submission->shown);
    if (EventLog* const log = events(); log != nullptr)
      log->end(submission->logged, log->now(), failure.status);
    submission->outcome = tl::unexpected(copy());
    if (submission->on_completion) {
      calling_back_ = std::this_thread::get_id();
      lock.unlock();
      try {
        submission->on_completion(submission->outcome);
      } catch (...) {
        // The set has ended already.
      }
      lock.lock();
      calling_back_ = {};
    }
    submission->is_complete = true;
    if (waiters_ > 0 || is_closing_) changed_.notify_all();
  }
}

}  // namespace ddl::runtime
