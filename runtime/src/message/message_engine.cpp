#include "runtime/src/message/message_engine.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/own_thread.h"
#include "base/text.h"

namespace ddl::runtime {
namespace {

/// While threads wait again and again, the own thread looks this often whether it is to drive.
constexpr std::chrono::milliseconds kPark{2};
/// A rank that has died, not left, is reported by others within this time.
constexpr std::chrono::seconds kGoneReport{1};
constexpr int kEventsAtOnce = 64;

}  // namespace

Status MessageEngine::join(Connections& world, Bootstrap& bootstrap) {
  world_ = &world;
  bootstrap_ = &bootstrap;
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail_errno("epoll_create1");
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return fail_errno("eventfd");
  DDL_TRY(watch_input(wake_.get()));
  for (const int listener : sockets_.listeners()) DDL_TRY(watch_input(listener));
  {
    const Lock lock(mutex_);
    life_ = Life::kJoined;
    guard_descriptors();
    // Before this nothing was told of an abort.
    if (world.abort().is_raised()) aborted_ = world.abort().notice();
  }
  std::vector<Watch> watches;
  for (const int listener : sockets_.listeners()) {
    watches.push_back({listener, [this] {
                         const Lock lock(mutex_);
                         if (life_ == Life::kJoined) (void)start();
                         return false;
                       }});
  }
  if (watches.empty()) return {};
  DDL_ASSIGN(ticket, job_.watcher.add(std::move(watches)));
  ticket_ = ticket;
  return {};
}

Outcome MessageEngine::check_open() const {
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  if (aborted_) {
    return fail(DDL_ERROR_ABORTED,
                "the context was aborted earlier: " + aborted_->describe_during("a message").message);
  }
  if (life_ != Life::kJoined && life_ != Life::kOpen)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "this rank has left the job");
  return {};
}

Outcome MessageEngine::start() {
  if (life_ != Life::kJoined) return {};
  if (world_->membership().size > 1) DDL_TRY(sockets_.start(*bootstrap_).map_error(to_failure));
  life_ = Life::kOpen;
  if (world_->membership().size == 1) return {};
  DDL_ASSIGN(thread, start_own_thread("ddl-messages", [this] { run(); }).map_error(to_failure));
  thread_ = std::move(thread);
  return {};
}

// What the program does.

Outcome MessageEngine::submit(const MessagePtr& message) {
  Lock lock(mutex_);
  DDL_TRY(check_open());
  DDL_TRY(start());
  const Outcome submitted = message->sends ? submit_send(message) : submit_receive(message);
  const bool was_lost = pending_.has_value();
  settle(lock);
  // It has failed with all others, and its handle says so.
  return was_lost ? Outcome() : submitted;
}

Outcome MessageEngine::submit_send(const MessagePtr& message) {
  if (message->peer == rank()) {
    send_to_self(message);
    return {};
  }
  if (left_.contains(message->peer)) {
    miss(message);
    return {};
  }
  DDL_ASSIGN(link, link_to(message->peer));
  MessageFrame frame;
  frame.set = message->set;
  frame.tag = message->tag;
  frame.bytes = message->bytes;
  frame.dtype = message->dtype;
  const bool is_eager =
      message->bytes <= MessageFrame::kMaxEager && message->bytes + sizeof frame <= link->credit;
  if (is_eager) {
    frame.kind = MessageFrame::Kind::kEager;
    frame.length = static_cast<std::uint32_t>(message->bytes);
    link->credit -= message->bytes + sizeof frame;
    link->post(frame, {message->buffer, message->bytes});
  } else {
    frame.kind = MessageFrame::Kind::kAnnounce;
    frame.number = ++link->last_number;
    frame.address = reinterpret_cast<std::uintptr_t>(message->buffer);
    link->announced.emplace(frame.number, message);
    open_.insert(message);
    link->post(frame);
  }
  link->has_messages = true;
  if (is_eager) complete(message);
  flush(*link);
  return {};
}

void MessageEngine::send_to_self(const MessagePtr& message) {
  Arrival arrival;
  arrival.set = message->set;
  arrival.from = rank();
  arrival.tag = message->tag;
  arrival.bytes = message->bytes;
  arrival.dtype = message->dtype;
  const std::span<const std::byte> bytes(message->buffer, message->bytes);
  if (const MessagePtr receive = matching_.take(arrival)) {
    const Outcome fits = deliver(arrival, bytes, receive);
    return complete(message, message->bytes <= MessageFrame::kMaxEager ? Outcome() : fits);
  }
  if (message->bytes <= MessageFrame::kMaxEager) {
    arrival.payload.assign(bytes.begin(), bytes.end());
    matching_.keep(std::move(arrival));
    return complete(message);
  }
  arrival.own = message;
  open_.insert(message);
  matching_.keep(std::move(arrival));
}

Outcome MessageEngine::submit_receive(const MessagePtr& message) {
  open_.insert(message);
  if (const auto arrival = matching_.post(message)) {
    const MessagePtr own = arrival->own;
    const Outcome fits = deliver(*arrival,
                                 own ? std::span<const std::byte>(own->buffer, own->bytes)
                                     : std::span<const std::byte>(arrival->payload),
                                 message);
    if (own) complete(own, fits);
    return {};
  }
  if (message->peer == rank()) return {};
  if (message->peer == DDL_ANY_RANK) {
    if (is_in_vain(*message, left_, rank())) miss(message);
    return {};
  }
  if (left_.contains(message->peer)) {
    miss(message);
    return {};
  }
  // A connection shows when the other rank leaves.
  if (incoming_.contains(message->peer)) return {};
  if (auto link = link_to(message->peer); !link) {
    matching_.remove(message);
    open_.erase(message);
    return fail(std::move(link.error()));
  }
  return {};
}

Outcome MessageEngine::wait(Message& message) {
  if (message.is_complete.load(std::memory_order_acquire) && message.outcome) return {};
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  Lock lock(mutex_);
  if (life_ == Life::kClosed) return message.outcome;
  ++waiters_;
  const Deadline deadline = Deadline::after_seconds(message.timeout_seconds);
  Interruption interruption;
  while (!message.is_complete) {
    bool by_signal = false;
    if (driver_ == Driver::kNone) {
      by_signal = drive(lock, Driver::kWaiter, interruption.limit(deadline));
    } else {
      if (driver_ == Driver::kOwnThread) kick();
      by_signal = changed_.wait(lock, interruption.limit(deadline));
    }
    if (message.is_complete) break;
    if (interruption.has_news(by_signal)) {
      // The program's handlers run here, and may take long.
      lock.unlock();
      const bool is_wanted = interruption.is_wanted(by_signal);
      lock.lock();
      if (is_wanted) give_up(AbortNotice::of(AbortReason::kInterrupted, world_->self()));
    }
    if (deadline.has_passed() && !pending_) {
      const std::string other = message.peer == DDL_ANY_RANK ? "any rank" : who_is(message.peer).describe();
      give_up(AbortNotice::of(AbortReason::kTimedOut, world_->self(),
                              world_->self().label() + " gave up after " +
                                  time_limit_text(message.timeout_seconds) + " in " + message.describe() +
                                  (message.sends ? " to " : " from ") + other));
    }
    settle(lock);
  }
  if (aborted_ && !message.outcome) {
    // The program may exit now, and must not before the other ranks know the cause.
    lock.unlock();
    job_.on_failure(&world_->abort());
    lock.lock();
  }
  --waiters_;
  ++ended_waits_;
  if (waiters_ > 0) {
    changed_.notify_all();
  } else if (is_parked_ || !open_.empty()) {
    resume_.notify_one();
  }
  return message.outcome;
}

tl::expected<bool, Failure> MessageEngine::test(Message& message) {
  if (message.is_complete.load(std::memory_order_acquire)) return true;
  if (fork_count() != fork_count_) return fail(inherited_by_fork());
  {
    Lock lock(mutex_);
    if (driver_ == Driver::kNone && !message.is_complete) {
      (void)drive(lock, Driver::kWaiter, Deadline::after(Deadline::Clock::duration::zero()));
      changed_.notify_all();
    }
  }
  // A program that tests again and again lets others run, such as the own thread.
  if (!message.is_complete) ::sched_yield();
  return message.is_complete.load(std::memory_order_acquire);
}

bool MessageEngine::is_idle() const {
  const Lock lock(mutex_);
  return waiters_ == 0;
}

// Failures.

void MessageEngine::complete(const MessagePtr& message, Outcome outcome) {
  open_.erase(message);
  message->outcome = std::move(outcome);
  message->is_complete.store(true, std::memory_order_release);
  if (waiters_ == 0) return;
  changed_.notify_all();
  if (is_asleep_ && driver_ == Driver::kWaiter) kick();
}

void MessageEngine::settle(Lock& lock) {
  while (pending_) {
    const AbortNotice notice = *pending_;
    lock.unlock();
    if (!world_->abort().is_raised()) world_->abort().raise(notice);
    world_->report_abort();
    // The cause that all ranks report may be another one.
    abort(world_->abort().notice());
    lock.lock();
    pending_.reset();
  }
}

void MessageEngine::abort(const AbortNotice& notice) {
  const Lock lock(mutex_);
  if (aborted_ || life_ == Life::kNew || life_ == Life::kClosed) return;
  fail_all(notice);
}

void MessageEngine::fail_all(const AbortNotice& notice) {
  aborted_ = notice;
  matching_.clear();
  // Nothing is read from the program's buffers any more, nor written to them, but for what is just being copied.
  forget_all_links();
  outgoing_.clear();
  incoming_.clear();
  lost_.clear();
  copies_.resize(is_copying_ ? 1 : 0);
  const MessagePtr copied = is_copying_ ? copies_.front().receive : nullptr;
  for (const MessagePtr& message : std::unordered_set<MessagePtr>(open_)) {
    if (message != copied) complete(message, aborted_during(*message));
  }
  kick();
}

Outcome MessageEngine::aborted_during(const Message& message) const {
  return fail(aborted_->describe_during(message.describe()));
}

Member MessageEngine::who_is(int rank) const { return world_->who_is(rank); }

// Driving.

void MessageEngine::kick() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

bool MessageEngine::drive(Lock& lock, Driver driver, Deadline deadline) {
  driver_ = driver;
  if (!copies_.empty()) {
    copy_part(lock);
    deadline = Deadline::after(Deadline::Clock::duration::zero());
  }
  Deadline next = deadline;
  const auto until = [&next](Deadline other) { next = other.when() < next.when() ? other : next; };
  for (const auto& [rank, lost] : lost_) until(lost.first);
  // While ranks connect, their sockets are polled, too.
  std::vector<pollfd> entries;
  if (!aborted_ && sockets_.is_connecting()) {
    entries.push_back({epoll_.get(), POLLIN, 0});
    sockets_.append_entries(entries);
    until(sockets_.next_deadline());
  }
  std::array<epoll_event, kEventsAtOnce> events{};
  int count = 0;
  const auto sleep = [&](int milliseconds) {
    if (entries.empty())
      return count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, milliseconds);
    return ::poll(entries.data(), entries.size(), milliseconds);
  };
  const bool spins = driver == Driver::kWaiter && !deadline.has_passed();
  const Deadline spun = Deadline::after(spins ? world_->wait_policy().spin : std::chrono::nanoseconds(0));
  is_asleep_ = true;
  lock.unlock();
  int ready = 0;
  while (spins && ready == 0 && !spun.has_passed()) ready = sleep(0);
  if (ready == 0) ready = sleep(next.poll_milliseconds());
  const bool by_signal = ready < 0 && errno == EINTR;
  if (!entries.empty()) count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, 0);
  lock.lock();
  is_asleep_ = false;
  bool has_callers = std::any_of(entries.begin(), entries.end(), [this](const pollfd& entry) {
    return entry.fd != epoll_.get() && entry.revents != 0;
  });
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    if (fd == wake_.get()) {
      std::uint64_t kicks = 0;
      (void)!::read(wake_.get(), &kicks, sizeof kicks);
    } else if (const auto link = links_.find(fd); link != links_.end()) {
      serve(LinkPtr(link->second), events[static_cast<std::size_t>(i)].events);
    } else {
      has_callers = true;  // on a listener
    }
  }
  if (!aborted_ && (has_callers || sockets_.next_deadline().has_passed())) advance_sockets();
  for (const auto& [rank, lost] : lost_) {
    if (lost.first.has_passed()) give_up(lost.second);
  }
  driver_ = Driver::kNone;
  settle(lock);
  changed_.notify_all();
  return by_signal;
}

void MessageEngine::advance_sockets() {
  std::vector<MessageSockets::Made> made;
  std::vector<int> gone;
  if (const Status advanced = sockets_.advance(made, gone); !advanced)
    give_up(AbortNotice::of(AbortReason::kFailed, world_->self(), advanced.error().message()));
  for (MessageSockets::Made& one : made) add_link(std::move(one));
  for (const int rank : gone) {
    // It has left before this rank connected, or it has died, which others report.
    if (life_ == Life::kOpen && needs(rank) && !left_.contains(rank)) {
      lost_.emplace(
          rank, std::pair(Deadline::after(kGoneReport), AbortNotice::of(AbortReason::kLeft, who_is(rank))));
    } else {
      left_.insert(rank);
    }
  }
}

void MessageEngine::run() {
  Lock lock(mutex_);
  std::uint64_t seen = 0;
  while (life_ == Life::kOpen && !aborted_) {
    if (driver_ == Driver::kNone && waiters_ == 0) {
      (void)drive(lock, Driver::kOwnThread, Deadline::never());
    } else if (std::exchange(seen, ended_waits_) != ended_waits_) {
      resume_.wait_for(lock, kPark);
    } else {
      is_parked_ = true;
      resume_.wait(lock);
      is_parked_ = false;
    }
  }
}

}  // namespace ddl::runtime
