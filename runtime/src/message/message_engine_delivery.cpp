// What arrives for an engine goes into receives: matched, copied, granted, refused or dropped.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/src/message/message_engine.h"

namespace ddl::runtime {
namespace {

/// While such a part is copied from the memory of another rank, no other thread of the program waits for the engine.
constexpr std::uint64_t kPartBytes = std::uint64_t{4} << 20;
/// Credit is given back in such portions.
constexpr std::uint64_t kCreditPortion = MessageLink::kEagerCredit / 4;

}  // namespace

Outcome MessageEngine::deliver(const Arrival& arrival, std::span<const std::byte> payload,
                               const MessagePtr& receive) {
  if (receive->source != nullptr) {
    const auto found = std::find(receive->job_ranks.begin(), receive->job_ranks.end(), arrival.from);
    *receive->source = static_cast<std::int32_t>(found - receive->job_ranks.begin());
  }
  const auto incoming = incoming_.find(arrival.from);
  MessageLink* const link = incoming == incoming_.end() ? nullptr : incoming->second.get();
  const bool is_announced = arrival.number != 0;
  if (!is_announced && link != nullptr) give_back(*link, arrival.bytes + sizeof(MessageFrame));
  if (arrival.bytes != receive->bytes) return refuse(arrival, receive);
  if (!is_announced) {
    if (!payload.empty()) std::memcpy(receive->buffer, payload.data(), payload.size());
    complete(receive);
    return {};
  }
  if (link == nullptr || !link->is_connected()) {
    // The sender has left, or its death is about to be reported: its memory may be another message's.
    miss(receive);
    return {};
  }
  if (arrival.bytes == 0) {
    link->post(MessageFrame::of(MessageFrame::Kind::kTaken, arrival.number));
    flush(*link);
    complete(receive);
    return {};
  }
  if (link->reads_memory) {
    copies_.push_back({incoming->second, arrival.number, arrival.address, receive});
    if (is_asleep_) kick();
    return {};
  }
  grant(*link, arrival.number, receive);
  return {};
}

void MessageEngine::grant(MessageLink& link, std::uint64_t number, const MessagePtr& receive) {
  link.granted.emplace(number, receive);
  link.post(MessageFrame::of(MessageFrame::Kind::kGrant, number));
  flush(link);
}

std::uint64_t MessageEngine::Copy::next_part() const { return std::min(receive->bytes - done, kPartBytes); }

bool MessageEngine::Copy::copy() const {
  const std::uint64_t end = done + next_part();
  for (std::uint64_t at = done; at < end;) {
    const iovec to{receive->buffer + at, end - at};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the other process
    const iovec from{reinterpret_cast<void*>(address + at), end - at};
    const ssize_t got = retry_eintr([&] { return ::process_vm_readv(link->pid, &to, 1, &from, 1, 0); });
    if (got <= 0) return false;
    at += static_cast<std::uint64_t>(got);
  }
  return true;
}

void MessageEngine::copy_part(Lock& lock) {
  const Copy& copy = copies_.front();  // others may be added behind it meanwhile
  is_copying_ = true;
  lock.unlock();
  const bool is_copied = copy.link->reads_memory && copy.copy();
  lock.lock();
  is_copying_ = false;
  note_copied(is_copied);
}

void MessageEngine::finish_copies(const MessageLink& link) {
  const auto is_of_link = [&](const Copy& copy) { return copy.link.get() == &link; };
  while (std::any_of(copies_.begin(), copies_.end(), is_of_link)) {
    const Copy& copy = copies_.front();
    note_copied(copy.link->reads_memory && copy.copy());
  }
}

void MessageEngine::note_copied(bool is_copied) {
  Copy& first = copies_.front();
  if (is_copied) first.done += first.next_part();
  if (is_copied && !aborted_ && first.done < first.receive->bytes) return;
  const Copy copy = std::move(first);
  copies_.pop_front();
  if (aborted_) return complete(copy.receive, aborted_during(*copy.receive));
  if (!copy.link->is_connected()) return;  // the sender's death is about to be reported
  if (is_copied) {
    copy.link->post(MessageFrame::of(MessageFrame::Kind::kTaken, copy.number));
    flush(*copy.link);
    return complete(copy.receive);
  }
  // The kernel may forbid it, and some memory cannot be read so.
  copy.link->reads_memory = false;
  grant(*copy.link, copy.number, copy.receive);
}

Outcome MessageEngine::refuse(const Arrival& arrival, const MessagePtr& receive) {
  const std::string sent = describe_size(arrival.bytes, arrival.dtype);
  const std::string expected = describe_size(receive->bytes, receive->dtype);
  Outcome outcome =
      fail(DDL_ERROR_MISMATCH, describe_mismatch(who_is(arrival.from).describe(), sent,
                                                 world_->self().describe(), expected, arrival.tag));
  if (const auto link = incoming_.find(arrival.from); arrival.number != 0 && link != incoming_.end()) {
    MessageFrame frame = MessageFrame::of(MessageFrame::Kind::kRefused, arrival.number);
    frame.bytes = receive->bytes;
    frame.dtype = receive->dtype;
    link->second->post(frame);
    flush(*link->second);
  }
  complete(receive, outcome);
  return outcome;
}

void MessageEngine::give_back(MessageLink& link, std::uint64_t bytes) {
  link.consumed += bytes;
  if (link.consumed < kCreditPortion) return;
  MessageFrame frame = MessageFrame::of(MessageFrame::Kind::kCredit);
  frame.bytes = std::exchange(link.consumed, 0);
  link.post(frame);
  flush(link);
}

void MessageEngine::take_arrival(MessageLink& link, Arrival arrival, std::span<const std::byte> payload) {
  arrival.from = link.rank();
  if (const MessagePtr receive = matching_.take(arrival)) {
    (void)deliver(arrival, payload, receive);
    return;
  }
  if (freed_sets_.contains(arrival.set)) return drop(arrival);
  arrival.payload.assign(payload.begin(), payload.end());
  matching_.keep(std::move(arrival));
}

void MessageEngine::forget_set(std::uint32_t generation) {
  Lock lock(mutex_);
  freed_sets_.insert(generation);
  for (const Arrival& arrival : matching_.forget_set(generation)) drop(arrival);
}

void MessageEngine::drop(const Arrival& arrival) {
  if (arrival.own)
    return complete(arrival.own,
                    fail(DDL_ERROR_ABORTED, describe_dropped(world_->self().describe(), *arrival.own)));
  const auto link = incoming_.find(arrival.from);
  if (link == incoming_.end()) return;
  if (arrival.number == 0) return give_back(*link->second, arrival.bytes + sizeof(MessageFrame));
  link->second->post(MessageFrame::of(MessageFrame::Kind::kDropped, arrival.number));
  flush(*link->second);
}

MessagePtr MessageEngine::take_announced(MessageLink& link, std::uint64_t number) {
  const auto found = link.announced.find(number);
  if (found == link.announced.end()) return nullptr;
  MessagePtr message = std::move(found->second);
  link.announced.erase(found);
  return message;
}

}  // namespace ddl::runtime
