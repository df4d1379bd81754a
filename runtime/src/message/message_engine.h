// Messages from one rank of a job to another, on one rank: takes what the program submits, and moves it.
//
// One thread at a time drives the engine: one that waits for a message, or, while none waits, the engine's own thread.
// That exists from the first message on, or from the first rank on that connects. The thread that drives sleeps until
// a connection has something to read, or space to write.
//
// A rank connects to another one when it first has a message for it. So there are up to two connections of a pair of
// ranks, one for each direction (message/frame.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include "runtime/src/common/fork_guard.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/message/matching.h"
#include "runtime/src/message/message.h"
#include "runtime/src/message/message_link.h"
#include "runtime/src/message/message_sockets.h"
#include "runtime/src/shm/signalled_condition.h"
#include "runtime/src/wire/connections.h"

namespace ddl::runtime {

/// All functions but publish() and join() may be called from any thread.
class MessageEngine final : private FrameReceiver {
 public:
  /// job outlives the time until leave() has returned.
  explicit MessageEngine(JobResources& job) : job_(job), sockets_(job.settings), fork_count_(fork_count()) {}
  ~MessageEngine() { leave(); }
  MessageEngine(const MessageEngine&) = delete;
  MessageEngine& operator=(const MessageEngine&) = delete;

  /// Puts into the bootstrap of the world what other ranks need to connect, before its fence.
  Status publish(Bootstrap& bootstrap) { return sockets_.publish(bootstrap); }
  /// The world has been joined. Both outlive the time until leave() has returned.
  Status join(Connections& world, Bootstrap& bootstrap);

  /// Takes a message. A small one that is sent is complete when this returns.
  Outcome submit(const MessagePtr& message);
  /// Returns when it is complete, with its outcome. The time limit of the message begins here.
  Outcome wait(Message& message);
  tl::expected<bool, Failure> test(Message& message);

  /// The program has freed a process set: messages that no receive has been posted for are dropped. Those that are open
  /// go on.
  void forget_set(std::uint32_t generation);

  /// The world has been aborted: all open messages fail.
  void abort(const AbortNotice& notice);
  /// No thread waits.
  bool is_idle() const;
  /// Fails what is open, delivers what has been sent, and communicates no more. Not while a thread waits.
  void leave();

 private:
  using Lock = std::unique_lock<std::mutex>;
  using LinkPtr = std::shared_ptr<MessageLink>;

  enum class Life { kNew, kJoined, kOpen, kLeaving, kClosed };
  enum class Driver { kNone, kWaiter, kOwnThread };

  /// A message that this rank copies from the memory of its sender, a process of this host.
  struct Copy {
    LinkPtr link;
    std::uint64_t number = 0;
    std::uint64_t address = 0;  ///< of the sender's
    MessagePtr receive;
    std::uint64_t done = 0;  ///< bytes

    /// The bytes that are copied at once.
    std::uint64_t next_part() const;
    /// Copies them. False if the kernel does not allow it.
    bool copy() const;
  };

  // What arrives.
  Status on_frame(MessageLink& link, const MessageFrame& frame, std::span<const std::byte> payload) override;
  Result<std::span<std::byte>> place_of(MessageLink& link, const MessageFrame& frame) override;
  void on_data(MessageLink& link, const MessageFrame& frame) override;
  void on_sent(const MessagePtr& message) override { complete(message); }

  Outcome check_open() const;
  Outcome start();
  int rank() const { return world_->membership().rank; }

  Outcome submit_send(const MessagePtr& message);
  Outcome submit_receive(const MessagePtr& message);
  void send_to_self(const MessagePtr& message);
  /// The message goes into the receive, or does not fit it. payload: of one that is here.
  Outcome deliver(const Arrival& arrival, std::span<const std::byte> payload, const MessagePtr& receive);
  Outcome refuse(const Arrival& arrival, const MessagePtr& receive);
  void drop(const Arrival& arrival);
  void grant(MessageLink& link, std::uint64_t number, const MessagePtr& receive);
  /// Copies a part of the first of copies_, without the lock.
  void copy_part(Lock& lock);
  void note_copied(bool is_copied);
  /// Copies everything up to the last one of this link.
  void finish_copies(const MessageLink& link);
  void give_back(MessageLink& link, std::uint64_t bytes);
  void take_arrival(MessageLink& link, Arrival arrival, std::span<const std::byte> payload);
  /// A message of this link that was announced, which is then announced no more; null: there is none.
  static MessagePtr take_announced(MessageLink& link, std::uint64_t number);

  /// This rank's own link to another one, which is made if there is none.
  tl::expected<LinkPtr, Failure> link_to(int rank);
  void add_link(MessageSockets::Made made);
  Status watch_input(int fd) const;
  void flush(MessageLink& link);
  void serve(const LinkPtr& link, std::uint32_t events);
  void forget(MessageLink& link);
  void forget_all_links();
  void end_link(MessageLink& link, const Error& error);
  void note_left(int rank);
  /// The message is for a rank that has left, or from one.
  void miss(const MessagePtr& message);
  bool needs(int rank) const;
  Member who_is(int rank) const;

  void complete(const MessagePtr& message, Outcome outcome = {});
  /// The world is to be aborted with this notice, as soon as the lock is released.
  void give_up(const AbortNotice& notice) {
    if (!pending_) pending_ = notice;
  }
  void settle(Lock& lock);
  void fail_all(const AbortNotice& notice);
  Outcome aborted_during(const Message& message) const;

  /// One thread at a time. Sleeps until there is something to do, or the deadline has passed, and does it. Whether a
  /// signal has ended the sleep.
  bool drive(Lock& lock, Driver driver, Deadline deadline);
  void advance_sockets();
  void kick() const;
  void run();
  void guard_descriptors();
  /// What this rank has sent on its own links arrives; or others learn on theirs that it leaves.
  void end_links(Lock& lock, bool own, Deadline deadline);
  void fail_open();

  JobResources& job_;
  MessageSockets sockets_;
  std::uint64_t fork_count_;
  Connections* world_ = nullptr;
  Bootstrap* bootstrap_ = nullptr;
  Watcher::Ticket ticket_ = 0;
  UniqueFd epoll_;
  UniqueFd wake_;  ///< an eventfd that ends a sleep

  mutable std::mutex mutex_;        ///< guards what follows, and sockets_ once joined
  SignalledCondition changed_;      ///< a message is complete, or a thread drives no more
  std::condition_variable resume_;  ///< for the own thread
  Life life_ = Life::kNew;
  Driver driver_ = Driver::kNone;
  bool is_asleep_ = false;  ///< the thread that drives
  int waiters_ = 0;
  std::uint64_t ended_waits_ = 0;
  bool is_parked_ = false;  ///< the own thread, until it is told that nobody waits
  Matching matching_;
  std::unordered_set<MessagePtr> open_;
  std::unordered_set<std::uint32_t> freed_sets_;
  std::deque<Copy> copies_;
  bool is_copying_ = false;          ///< the thread that drives, the first of copies_, without the lock
  std::map<int, LinkPtr> links_;     ///< that are connected, by descriptor
  std::map<int, LinkPtr> outgoing_;  ///< this rank's own, by the other rank
  std::map<int, LinkPtr> incoming_;  ///< by the other rank
  std::unordered_set<int> left_;     ///< ranks that have left in order
  std::map<int, std::pair<Deadline, AbortNotice>> lost_;  ///< ranks, until the true cause is known
  std::optional<AbortNotice> pending_;
  std::optional<AbortNotice> aborted_;
  std::unique_ptr<ClosedInForkedChild> closed_in_child_;
  std::thread thread_;
};

}  // namespace ddl::runtime
