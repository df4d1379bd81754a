// The engine of a process set's named tensors, on one rank: takes what the program submits, agrees with the other ranks
// on what comes next, and makes the calls.
//
// Whoever waits makes progress. One thread at a time drives the engine: a thread that waits for a tensor, or, while
// none waits, the engine's own thread, which exists from the first tensor on (and which is not woken while the program
// waits for each tensor at once, named/blocking_use.h). The thread that drives makes *calls* on connections of the
// engine's own, beside those of the ordered collectives; all ranks make the same ones, numbered alike. A table says
// which is next (named/next_call.h): a round of agreement, in which the ranks exchange what they have to announce
// (named/agreement.h), or a batch of tensors. A rank that has no open tensor makes none: nothing can be completed
// without it anyway.
//
// Ranks that enter different calls find that out by the comparison that precedes every call, before anything is
// written, and agree then. A rank that enters a round wakes the others (shm/doorbell.h); those that have open tensors
// come, and after a round without news all sleep until someone has news. So nothing is polled.
//
// If an MPI moves the data, the program may have initialised it so that only some threads may call it, and not the
// engine's own. Then only those make calls, while they wait. A thread that may not waits for an abort, unless one that
// may waits too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/named/blocking_use.h"
#include "runtime/src/named/next_call.h"
#include "runtime/src/named/submission.h"
#include "runtime/src/shm/doorbell.h"
#include "runtime/src/shm/signalled_condition.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// All functions may be called from any thread.
class Engine {
 public:
  /// job, connections and first, those of the process set, outlive the time until close() has returned. first: the
  /// backend of its ordered collectives. record: where the launcher sees what this rank does in the set; null: nowhere.
  Engine(JobResources& job, Connections& connections, CollectiveBackend& first, Prediction::Limits limits,
         contract::SetRecord* record);
  ~Engine() { close(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes tensors, all or none. Fails if a tensor of one of these names is open.
  Outcome submit(const std::vector<SubmissionPtr>& submissions);
  /// Returns when it is complete, with its outcome.
  Outcome wait(Submission& submission);
  /// Whether it is complete. A program that tests a tensor wants it: the engine does not put it off. If it tests again,
  /// it yields to other threads, such as the engine's own.
  tl::expected<bool, Failure> test(Submission& submission);
  /// Takes part in the others' tensors without data until all ranks have joined. last: the highest of the ranks of the
  /// set that joined last.
  Outcome join(int& last);
  /// The program has ended a step.
  Outcome end_step();

  /// The calls that this rank has made, whether or not the others have made the same ones.
  struct Counts {
    std::uint64_t rounds = 0;     ///< of agreement
    std::uint64_t agreed = 0;     ///< batches that a round has found ready
    std::uint64_t predicted = 0;  ///< batches that were entered without a round

    std::uint32_t all() const { return static_cast<std::uint32_t>(rounds + agreed + predicted); }
  };
  Counts counts() const;
  /// The name of a tensor that this rank has submitted, and that is not complete; nullopt: there is none.
  std::optional<std::string> open_tensor() const;

  /// No thread waits, and the calling one is not in a callback.
  bool is_idle() const;
  /// Completes all open tensors with an error, and communicates no more. Not while a thread waits.
  void close();

 private:
  using Lock = std::unique_lock<std::mutex>;

  enum class Life { kOpen, kClosing, kClosed };
  /// What the driving thread does.
  enum class Driver {
    kNone,    ///< no thread drives
    kCalls,   ///< it makes a call, or looks for one
    kSleeps,  ///< until there may be a call to make
  };

  /// A failure if the program can submit no tensors any more.
  Outcome check_open() const;
  bool has_work() const { return !open_.empty() || joining_ != nullptr || agreement_.agreed() != nullptr; }
  bool holds(Fact fact);
  NextCall next_call() {
    return runtime::next_call(phase_, [this](Fact fact) { return holds(fact); });
  }

  template <class Done>
  void drive_until(Lock& lock, Done done);
  /// Makes the next call, or sleeps until there may be one. The lock is released meanwhile. may_call: this thread may
  /// make calls; otherwise it sleeps until a thread that may comes, or the ranks are aborted.
  void drive(Lock& lock, bool may_call, Interruption& interruption);
  /// After a sleep. If the program wants the wait to end, ends the process set on all ranks; the tensors fail by the
  /// next call. The lock may be released meanwhile.
  void look_for_interruption(Lock& lock, Interruption& interruption, bool by_signal);
  /// Wakes the driving thread, if it sleeps and there is a call to make, or another reason.
  void wake_driver(bool has_other_reason = true);
  /// The same for the engine's own thread, if none drives.
  void wake_own_thread(bool has_other_reason);
  /// This thread is in a callback.
  bool is_calling_back() const { return calling_back_ == std::this_thread::get_id(); }
  void count_waiter(int change, bool may_call);
  /// The program's wait has ended.
  void note_wait(LoggedInterval& wait);
  void run();

  /// An exception ends the process set on all ranks. Throws nothing.
  Outcome make(NextCall call, Lock& lock);
  Outcome give_up(ddl_status status, const char* why, Lock& lock);
  Outcome connect(Lock& lock);
  /// The engine's own, once there are some.
  Connections& connections() const {
    return own_connections_ != nullptr ? *own_connections_ : set_connections_;
  }
  int rank() const { return set_connections_.membership().rank; }
  /// What a call after an abort of the ranks fails with.
  Failure aborted() const;
  Outcome agree(Lock& lock);
  Outcome execute(const Batch& next, Lock& lock);
  Outcome execute_logged(const Batch& batch, const std::vector<SubmissionPtr>& submissions);
  void complete(std::span<const SubmissionPtr> submissions, const Outcome& outcome, Lock& lock);
  /// No call can be made any more. Throws nothing: without memory for a message, an outcome has the status alone.
  void fail_all(Failure failure, Lock& lock);

  /// Null: nothing is recorded.
  EventLog* events() const { return life_ == Life::kClosed ? nullptr : job_.events.get(); }
  contract::Event event_of_engine(contract::Event::Kind kind, const Call& call = {}) const;
  std::uint64_t log_submission(const Submission& submission) const;
  void log_steps();
  void pass(CallKind during, FaultPoint point) { set_connections_.fault().pass(during, point); }

  JobResources& job_;
  Connections& set_connections_;
  CollectiveBackend& first_;
  bool any_may_call_;  ///< every thread may make calls, the engine's own too
  contract::SetRecord* record_;
  std::uint64_t fork_count_;
  std::chrono::milliseconds patience_;  ///< a handle may be waited for when the job's settings are gone
  Doorbells doorbells_;
  CallTally tally_;                         ///< of the thread that makes the calls
  Connections* own_connections_ = nullptr;  ///< null until the first call
  std::unique_ptr<CollectiveBackend> backend_;

  mutable std::mutex mutex_;          ///< guards what follows
  SignalledCondition changed_;        ///< a driving thread has made a call, or drives no more
  std::condition_variable has_work_;  ///< for the engine's own thread
  OpenTensors open_;
  Agreement agreement_;
  Life life_ = Life::kOpen;
  Driver driver_ = Driver::kNone;
  Phase phase_ = Phase::kPredicting;
  Failure failure_;  ///< of Phase::kBroken
  Counts counts_;
  int waiters_ = 0;
  int able_waiters_ = 0;         ///< those of them that may make calls
  bool saw_completion_ = false;  ///< the program, since it submitted the last tensor
  BlockingUse blocking_use_;
  /// Of the thread that joins: the highest of the ranks that joined last, once all have. Null: this rank has not.
  std::shared_ptr<std::optional<int>> joining_;
  std::uint64_t steps_ = 0, logged_steps_ = 0;
  std::thread::id calling_back_;  ///< the thread that calls back
  std::thread thread_;
};

}  // namespace ddl::runtime
