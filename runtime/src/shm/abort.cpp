#include "runtime/src/shm/abort.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>

#include "base/text.h"
#include "runtime/src/shm/doorbell.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/flag_protocol.h"

namespace ddl::runtime {
namespace {

/// The maximum number of ranks that a message names, so that it stays readable for a job of a thousand ranks.
constexpr int kMaxNamed = 8;

/// For any segment, also one that the caller is not a member of; doorbell -1: it has none.
void raise_in(Segment segment, AbortCause cause, int doorbell) {
  std::uint64_t none = 0;
  segment.abort_line().cause.compare_exchange_strong(none, cause.encode());
  FutexPlatform platform;
  FlagProtocol protocol(platform);
  const std::vector<int> leaders = segment.leaders();
  const bool in_groups = ExchangeRole::of(leaders, 0).in_groups;
  for (int i = 0; i < segment.size(); ++i) {
    for (const unsigned parity : {0u, 1u}) protocol.interrupt(segment.flag(i, parity).word);
    if (!in_groups || leaders[i] != i) continue;
    protocol.interrupt(segment.gathered(i).word);
    protocol.interrupt(segment.released(i).word);
  }
  Doorbells::ring_all(segment);
  // The counter is never read back, so it wakes every poll() from now on. It overflows only after 2^64 aborts.
  if (doorbell >= 0) (void)::eventfd_write(doorbell, 1);
}

}  // namespace

std::optional<AbortCause> AbortCause::decode(std::uint64_t word) {
  if (word == 0) return std::nullopt;
  return AbortCause{static_cast<Where>(word >> 32), static_cast<int>(word & 0xFFFF'FFFF)};
}

void AbortDomain::raise(AbortCause cause) const { raise_in(segment_, cause, doorbell_); }

void AbortDomain::raise_timeout(double seconds, const Call& call,
                                const std::array<std::uint64_t, kMaxMembers / 64>& missing) const {
  TimeoutRecord& record = segment_.timeout_record(index_);
  record.seconds = seconds;
  record.call = call;
  record.missing = missing;
  raise(AbortCause{AbortCause::Where::kTimedOut, index_});
}

void AbortDomain::raise_timeout(double seconds, const Call& call, const Member& awaited) const {
  TimeoutRecord& record = segment_.timeout_record(index_);
  record.seconds = seconds;
  record.call = call;
  record.awaits_another_host = 1;
  record.awaited_rank = awaited.rank;
  record.awaited_pid = awaited.pid;
  record.awaited_host = HostField::of(awaited.host);
  raise(AbortCause{AbortCause::Where::kTimedOut, index_});
}

void AbortDomain::raise(const AbortNotice& notice) const {
  NoticeRecord& record = segment_.notice_record(index_);
  // Several threads of the process may learn of different causes at once. The first one raises, once the record is
  // complete. The second one waits for that, because its caller then reads the cause.
  if (record.is_taken.exchange(1) != 0) {
    (void)wait_raised(Deadline::never());
    return;
  }
  record.notice = notice;
  raise(AbortCause{AbortCause::Where::kReported, index_});
}

bool AbortDomain::wait_raised(Deadline deadline) const {
  // The doorbell is written after the cause was set, and stays readable.
  pollfd doorbell{doorbell_, POLLIN, 0};
  while (!is_raised() && !deadline.has_passed()) (void)::poll(&doorbell, 1, deadline.poll_milliseconds());
  return is_raised();
}

std::string AbortDomain::describe_timeout(int culprit) const {
  const TimeoutRecord& record = segment_.timeout_record(culprit);
  std::string missing;
  int count = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if ((record.missing[i / 64] >> (i % 64) & 1) == 0) continue;
    if (++count <= kMaxNamed) missing += (count == 1 ? "" : ", ") + members_[i].describe();
  }
  if (count > kMaxNamed) missing += " and " + std::to_string(count - kMaxNamed) + " more";
  if (record.awaits_another_host != 0) {
    const Member awaited{record.awaited_rank, record.awaited_host.str(), record.awaited_pid};
    missing = awaited.describe() + ", or a rank that it waits for";
  }
  return members_[culprit].label() + " gave up after " + time_limit_text(record.seconds) + " in " +
         record.call.describe() + ": not arrived: " + missing;
}

AbortNotice AbortDomain::notice() const {
  const auto cause = AbortCause::decode(segment_.abort_line().cause.load());
  DDL_CHECK(cause.has_value(), "the reason of an abort was asked for before there is one");
  const Member& member = members_[cause->member];
  switch (cause->where) {
    case AbortCause::Where::kDied: return AbortNotice::of(AbortReason::kDied, member);
    case AbortCause::Where::kLeft: return AbortNotice::of(AbortReason::kLeft, member);
    case AbortCause::Where::kTimedOut:
      return AbortNotice::of(AbortReason::kTimedOut, member, describe_timeout(cause->member));
    case AbortCause::Where::kReported: return segment_.notice_record(cause->member).notice;
  }
  return AbortNotice::of(AbortReason::kBroken, member, "an abort without a known cause");
}

void leave_segment(Segment segment, int index, std::uint32_t next, int doorbell) {
  segment.presence(index).presence.store(Presence::kLeft);
  segment.abort_line().any_left.fetch_or(1);
  if (segment.abort_line().cause.load() != 0) return;
  const auto word_of = [&](int i) -> SharedWord& { return segment.flag(i, next & 1).word; };
  if (FlagProtocol<FutexPlatform>::is_missed(next, segment.size(), word_of)) {
    raise_in(segment, {AbortCause::Where::kLeft, index}, doorbell);
  }
}

std::optional<int> AbortDomain::first_left(std::uint32_t sequence) const {
  if (segment_.abort_line().any_left.load() == 0) return std::nullopt;
  for (int i = 0; i < segment_.size(); ++i) {
    // In this order: a member publishes its sequences before it leaves.
    if (has_left(i) && !has_reached(segment_.flag(i, sequence & 1).word.load(), sequence)) return i;
  }
  return std::nullopt;
}

}  // namespace ddl::runtime
