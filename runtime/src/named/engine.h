// The engine of a process set's named tensors, on one rank: takes what the program hands over, agrees with the other
// ranks on what to carry out next, and carries it out.
//
// Whoever waits makes progress. One thread at a time drives the engine: a thread that waits for a tensor, or, while
// none waits, the engine's own thread, which exists from the first tensor on (and which is not woken while the program
// has the habit of waiting at once, named/waiting_habit.h). A thread that drives makes *calls* on
// connections of the engine's own, beside those of the ordered collectives; all ranks make the same ones, numbered
// alike, and a rank that has no open tensor makes none: nothing can be completed without it anyway. A call is
//
//   a round of agreement    the ranks exchange what they have to announce (named/agreement.h)
//   an agreed batch         tensors that a round has found ready on all ranks
//   a predicted batch       the tensors that the last steps let expect next, entered without a round
//
// A rank enters a predicted batch when it has all of its tensors. It asks to agree instead if it has a tensor that is
// not expected, if the program waits for a tensor that the prediction does not lead to, or if it has waited long for
// the rest of a batch. Ranks that enter different calls find that out by the comparison that precedes every call,
// before anything is written, and agree then. A rank that wants to agree rings the others' bells (shm/bell.h); those
// that have open tensors come, and after a round without news all sleep until someone has news. So nothing is polled.
//
// If MPI carries out the collectives, the program may have initialised it so that only some threads may call it, and
// not the engine's own. Then only those make calls, while they wait. A thread that may not waits for an abort, unless
// one that may waits too.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/named/agreement.h"
#include "runtime/src/named/submission.h"
#include "runtime/src/named/waiting_habit.h"
#include "runtime/src/shm/bell.h"
#include "runtime/src/shm/flag_protocol.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// A condition variable whose waits report signals, which those of the C++ library hide. All functions are called under
/// the lock.
class SignalledCondition {
 public:
  /// Returns when it is notified, the deadline has passed, or for no reason. Whether a signal has ended it.
  bool wait(std::unique_lock<std::mutex>& lock, Deadline deadline);
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, Done done) {
    while (!done()) (void)wait(lock, Deadline::never());
  }
  void notify_all();

 private:
  FutexPlatform::Word notifications_{0};
  int sleepers_ = 0;
};

/// All functions may be called from any thread.
class Engine {
 public:
  /// job, connections and first, those of the process set, outlive the time until close() has returned. first: the
  /// backend of its ordered collectives. shown: where the launcher sees what this rank does in the set; null: nowhere.
  Engine(JobResources& job, Connections& connections, CollectiveBackend& first, Prediction::Limits limits,
         contract::SetRecord* shown);
  ~Engine() { close(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes tensors over, all or none. Fails if a tensor of one of these names is open.
  Outcome submit(const std::vector<SubmissionPtr>& submissions);
  /// Returns when it is complete, with its outcome.
  Outcome wait(Submission& submission);
  /// Whether it is complete. A program that tests a tensor wants it: the engine does not put it off. If it tests again,
  /// it gives way to other threads, such as the engine's own.
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
  };
  Counts counts() const;

  /// No thread waits, and the calling one is not in a callback.
  bool is_idle() const;
  /// Completes all open tensors with an error, and communicates no more. Not while a thread waits.
  void close();

 private:
  enum class NextCall { kNone, kAgree, kAgreed, kPredicted };
  using Lock = std::unique_lock<std::mutex>;

  NextCall next_call();
  bool has_news() const;
  /// A tensor that the others do not know goes before the agreed ones.
  bool is_overtaken() const;
  bool has_lost_patience() const;
  bool is_predicted_here();
  /// A predicted batch that is here, and that not all ranks know to be here, goes before the next one.
  bool has_overtaking() const;
  bool has_work() const { return !open_.empty() || joining_ != nullptr || agreement_.agreed() != nullptr; }
  void take(const std::vector<SubmissionPtr>& submissions);
  void want(Submission& submission);

  /// Makes the next call, or sleeps until there may be one. The lock is released meanwhile. may_call: this thread may
  /// make calls; otherwise it sleeps until a thread that may comes, or the ranks are aborted.
  void drive(Lock& lock, bool may_call, Interruption& interruption);
  /// After a sleep. If the program wants the wait to end, ends the process set on all ranks; the tensors fail by the
  /// next call. The lock may be released meanwhile.
  void look_for_interruption(Lock& lock, Interruption& interruption, bool by_signal);
  /// This thread is in a callback.
  bool is_calling_back() const { return calling_back_ == std::this_thread::get_id(); }
  bool may_call_here() const { return any_may_call_ || first_.allows_call().has_value(); }
  template <class Done>
  void drive_until(Lock& lock, Done done);
  Outcome make(NextCall call, Lock& lock);
  /// The same; an exception ends the process set on all ranks. Throws nothing.
  Outcome try_to_make(NextCall call, Lock& lock);
  Outcome give_up(ddl_status status, const char* why, Lock& lock);
  Outcome connect(Lock& lock);
  /// What a call after an abort of the ranks fails with.
  Failure aborted() const;
  Outcome agree(Lock& lock);
  Outcome carry_out_agreed(Lock& lock);
  Outcome carry_out_predicted(Lock& lock);
  Outcome carry_out_logged(const Batch& batch, const std::vector<SubmissionPtr>& submissions);
  std::vector<SubmissionPtr> submissions_of(const Batch& batch) const;
  Deadline sleep_limit() const;
  void complete(const std::vector<SubmissionPtr>& submissions, const Outcome& outcome, Lock& lock);
  /// Throws nothing: without memory for a message, a tensor's outcome has the status alone.
  void complete_all(const Failure& failure, Lock& lock);
  void show_waiters() const;
  /// Null: nothing is recorded.
  EventLog* events() const { return is_closed_ ? nullptr : job_.events.get(); }
  contract::Event event_of_engine(contract::Event::Kind kind, const Call& call = {}) const;
  std::uint64_t log_submission(const Submission& submission) const;
  void log_end(const std::vector<SubmissionPtr>& submissions, const Outcome& outcome) const;
  void log_steps();
  void pass(CallKind during, FaultPoint point) { connections_.fault().pass(during, point); }
  void start_thread();
  void run();

  JobResources& job_;
  Connections& connections_;
  CollectiveBackend& first_;
  bool any_may_call_;  ///< every thread may make calls, the engine's own too
  contract::SetRecord* shown_;
  std::uint64_t fork_count_;
  std::chrono::milliseconds patience_;  ///< a handle may be waited for when the job's settings are gone
  int rank_ = 0, size_ = 1;
  Connections* twin_ = nullptr;  ///< null until the first call
  std::unique_ptr<CollectiveBackend> backend_;
  std::optional<Bells> bells_;

  mutable std::mutex mutex_;          ///< guards what follows
  SignalledCondition changed_;        ///< a driving thread has made a call, or drives no more
  std::condition_variable has_work_;  ///< for the engine's own thread
  std::unordered_map<std::string, SubmissionPtr> open_;  ///< by name
  std::vector<SubmissionPtr> unannounced_;               ///< of open_, in order
  Agreement agreement_;
  bool is_driven_ = false;
  bool is_asleep_ = false;   ///< the driving thread
  bool must_agree_ = false;  ///< the last call was not the same on all ranks
  bool is_quiet_ = false;    ///< the last round had no news
  std::uint32_t calls_ = 0;
  Counts counts_;
  std::size_t unexpected_ = 0;  ///< of unannounced_, as of version_
  std::uint64_t version_ = 0;   ///< of the prediction
  std::size_t ready_ = 0;       ///< the number of tensors of the predicted batch that have been found here
  int waiters_ = 0;
  int able_waiters_ = 0;         ///< those of them that may make calls
  std::size_t wanted_ = 0;       ///< of open_
  bool saw_completion_ = false;  ///< the program, since it handed over the last tensor
  WaitingHabit habit_;
  /// Of the thread that joins: the highest of the ranks that joined last, once all have. Null: this rank has not.
  std::shared_ptr<std::optional<int>> joining_;
  bool has_announced_join_ = false;
  std::uint64_t steps_ = 0, announced_steps_ = 0;
  std::uint64_t logged_steps_ = 0;
  std::thread::id calling_back_;  ///< the thread that calls back
  bool is_closing_ = false, is_closed_ = false;
  std::optional<Failure> broken_;  ///< no call can be made any more
  std::thread thread_;
};

}  // namespace ddl::runtime
