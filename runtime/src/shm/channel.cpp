#include "runtime/src/shm/channel.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/deadline.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/shm/exchange_groups.h"
#include "runtime/src/shm/flag_protocol.h"

namespace ddl::runtime {
namespace {

/// Probes of memory between two checks of the clock, the abort word and the peer's presence.
constexpr int kProbesPerRound = 64;

/// The maximum number of awaited ranks that a failing call names.
constexpr std::size_t kMaxAwaitedNamed = 8;

/// The CPU's hint for spin loops: the other hardware thread of the core runs faster, and leaving the loop is cheap.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Begins to take a line away from the caches of other cores. The compiler's builtin does so only for newer processors;
/// older ones ignore the instruction.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Time, for the work of this rank: a counter of the processor that costs little.
inline std::uint64_t work_clock() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<std::uint64_t>(Deadline::Clock::now().time_since_epoch().count());
#endif
}

/// A change of the stores takes effect after this number of exchanges of a long call.
constexpr int kSampleExchanges = 8;

/// Of chunks below this class, which take microseconds, only some calls are measured.
constexpr int kAlwaysMeasuredFrom = 6;
constexpr std::uint64_t kMeasuredCalls = 4;

/// The words of one parity.
struct GroupWords {
  Segment segment;
  unsigned parity;

  SharedWord& flag(int index) const { return segment.flag(index, parity).word; }
  SharedWord& gathered(int index) const { return segment.gathered(index).word; }
  SharedWord& released(int index) const { return segment.released(index).word; }
};

/// Spins until the word has reached the sequence, the policy's time or the deadline has passed, or there is a reason
/// to stop. Returns whether the word has reached the sequence.
template <class ShouldStop>
bool spin_until(const SharedWord& word, std::uint32_t sequence, const WaitPolicy& policy, Deadline deadline,
                ShouldStop should_stop) {
  if (policy.spin.count() > 0) {
    // Most often the awaited rank has arrived or is about to, so the first probes do not read the clock.
    for (int probe = 0; probe < kProbesPerRound; ++probe) {
      if (has_reached(word.load(std::memory_order_acquire), sequence)) return true;
      relax();
    }
    const auto end = std::min(Deadline::Clock::now() + policy.spin, deadline.when());
    do {
      for (int probe = 0; probe < kProbesPerRound; ++probe) {
        if (has_reached(word.load(std::memory_order_acquire), sequence)) return true;
        relax();
      }
    } while (!should_stop() && Deadline::Clock::now() < end);
  }
  for (int i = 0; i < policy.yields; ++i) {
    if (has_reached(word.load(std::memory_order_acquire), sequence)) return true;
    ::sched_yield();
  }
  return false;
}

}  // namespace

Channel::Channel(Segment segment, const Members& members, const AbortDomain& abort, int index,
                 WaitPolicy policy, const SharedHeap& heap, FaultInjector& fault, ArrivalWaits waits)
    : segment_(segment),
      members_(members),
      abort_(abort),
      index_(index),
      policy_(policy),
      heap_(heap),
      fault_(fault),
      waits_(std::move(waits)),
      role_(ExchangeRole::of(segment.leaders(), index)),
      sequence_(segment.first_sequence()),
      first_sequence_(sequence_) {}

Outcome Channel::begin(const Call& call, std::uint64_t fingerprint, CallDeadline deadline,
                       std::size_t chunk_bytes, SlotUse use) {
  DDL_CHECK(chunk_bytes <= slot_bytes() && !is_ahead_, call.describe());
  call_ = call;
  if (call.number == 0) call_.number = ++calls_;
  fingerprint_ = fingerprint;
  is_small_ = chunk_bytes <= FlagLine::kPayloadBytes;
  subslot_bytes_ = std::max<std::size_t>((chunk_bytes + kLineBytes - 1) / kLineBytes, 1) * kLineBytes;
  chunk_bytes_ = chunk_bytes;
  use_ = use;
  is_swapping_ = !is_small_ && may_swap(use) && published_slots() == Slots::kSwapped;
  // A few lines pass between two cores faster than they come out of a farther cache, and so do swapped ones.
  subslots_ =
      is_swapping_ || is_fetched(chunk_bytes) ? 1 : static_cast<std::uint32_t>(slot_bytes() / subslot_bytes_);
  stores_ = published_stores();
  deadline_ = deadline;
  waits_.begin();
  first_sequence_ = sequence_ + 1;
  sample_.reset();
  if (abort_.is_raised()) return fail(abort_.describe(call_, false));
  return {};
}

Outcome Channel::exchange() {
  if (auto synchronized = synchronize(); !synchronized) return synchronized;
  const auto mismatched = mismatched_member();
  return mismatched ? mismatch(*mismatched) : Outcome();
}

Outcome Channel::exchange_ahead() {
  // Leaders gather and release the ranks of their groups, so they wait.
  if (role_.in_groups || size() == 1) return exchange();
  arrive();
  is_ahead_ = true;
  if (sample_) sample_->work_began = work_clock();
  prefetch_next();
  return {};
}

Outcome Channel::await_others(CallDeadline deadline) {
  is_ahead_ = false;
  deadline_ = deadline;
  if (auto met = meet(); !met) return met;
  if (published_sample_) all_arrived();
  const auto mismatched = mismatched_member();
  return mismatched ? mismatch(*mismatched) : Outcome();
}

Outcome Channel::mismatch(int member) const {
  // Every rank compares with the first, so all find the same pair and report the same message.
  return fail(DDL_ERROR_MISMATCH, "the ranks called different collectives: " + members_[0].label() +
                                      " called " + call_of(0).signature() + ", " + members_[member].label() +
                                      " called " + call_of(member).signature());
}

void Channel::show(const Note& note) {
  static_assert(sizeof note <= FlagLine::kPayloadBytes);
  std::memcpy(segment_.flag(index_, (sequence_ + 1) & 1).payload.data(), &note, sizeof note);
}

Channel::Note Channel::note_of(int index) const {
  Note note;
  std::memcpy(&note, segment_.flag(index, sequence_ & 1).payload.data(), sizeof note);
  return note;
}

bool Channel::somebody_uses_heap() const {
  // The data of the last exchange stay valid until all ranks, including this one, have published the next.
  for (int i = 0; i < size(); ++i) {
    if (notes_of(i).uses_heap != 0) return true;
  }
  return false;
}

void Channel::choose_stores(StoreChoice choice) {
  choice_ = choice;
  streamed_classes_ = choice_.streamed_classes();
  turning_classes_ = choice_.turning_classes();
}

Slots Channel::published_slots() const {
  const auto size = chunk_class(chunk_bytes_);
  // Both must do the same, and before the first exchange no member knows the other's guess.
  if (!size || *size < kFirstSwappable || !has_exchanged()) return Slots::kSwapped;
  return (notes_of(0).turning_classes >> (*size - kFirstSwappable) & 1) != 0 ? Slots::kInTurns
                                                                             : Slots::kSwapped;
}

Stores Channel::published_stores() const {
  const auto size = chunk_class(chunk_bytes_);
  if (!size || (is_swapping_ && *size >= kFirstSwappable)) return Stores::kPlain;
  // Before the first exchange there is only the own guess.
  const std::uint32_t classes = has_exchanged() ? notes_of(0).streamed_classes : streamed_classes_;
  return (classes >> *size & 1) != 0 ? Stores::kStreaming : Stores::kPlain;
}

void Channel::Sample::add_work() {
  if (next_halves > 0) work += work_clock() - work_began;
  halves += next_halves;
  ++exchanges;
}

std::optional<Stores> Channel::sampled_stores() const {
  const bool is_choice = !is_swapping_ || is_fetched(chunk_bytes_);
  return is_choice && !choice_.has_fixed_stores() ? std::optional(stores_) : std::nullopt;
}

void Channel::begin_sampling() {
  const auto size = chunk_class(chunk_bytes_);
  if (!size || segment_.size() == 1) return;
  if (*size < kAlwaysMeasuredFrom && call_.number % kMeasuredCalls != 0) return;
  Sample sample{.chunk_class = *size, .stores = sampled_stores()};
  // A call keeps its slots, so only its first sample counts.
  if (may_swap(use_) && *size >= kFirstSwappable && !choice_.has_fixed_slots())
    sample.slots = is_swapping_ ? Slots::kSwapped : Slots::kInTurns;
  if (!sample.stores && !sample.slots) return;
  sample.work_began = work_clock();
  sample_ = sample;
}

void Channel::end_sampling() {
  if (!sample_) return;
  if (sample_->exchanges > 0) {
    sample_->work += work_clock() - sample_->work_began;
    ++sample_->halves;
    end_sample();
  }
  sample_.reset();
}

void Channel::end_sample() {
  ended_sample_ = sample_;
  ended_sample_->kind = call_.kind;
  ended_sample_->bytes = chunk_bytes_ * static_cast<std::size_t>(sample_->halves) / 2;
}

void Channel::all_arrived() {
  if (published_sample_) {
    if (index_ == 0) note_sample(*published_sample_);
    published_sample_.reset();
  }
  if (!sample_) return;
  sample_->next_halves = 2;
  if (sample_->exchanges == kSampleExchanges) {
    end_sample();
    stores_ = published_stores();
    sample_ = Sample{.chunk_class = sample_->chunk_class, .stores = sampled_stores(), .next_halves = 0};
    if (!sample_->stores) return sample_.reset();
  }
  sample_->work_began = work_clock();
}

void Channel::note_sample(const Sample& sample) {
  std::uint64_t most = 0;
  for (int i = 0; i < size(); ++i) {
    const std::uint64_t work = unpacked_work(notes_of(i).work);
    if (work == 0) return;
    most = std::max(most, work);
  }
  const double cost = static_cast<double>(most) / static_cast<double>(sample.bytes);
  if (sample.slots) choice_.add_sample(sample.chunk_class, sample.kind, *sample.slots, cost);
  if (sample.stores) choice_.add_sample(sample.chunk_class, sample.kind, *sample.stores, cost);
  streamed_classes_ = choice_.streamed_classes();
  turning_classes_ = choice_.turning_classes();
}

FlagLine::Notes Channel::notes_of(int index) const {
  return index == index_ ? notes_ : segment_.flag(index, sequence_ & 1).notes;
}

std::uint64_t Channel::fingerprint_of(int index) const {
  return index == index_ ? fingerprint_ : segment_.flag(index, sequence_ & 1).fingerprint;
}

std::optional<int> Channel::mismatched_member() const {
  const std::uint64_t first = fingerprint_of(0);
  for (int i = 1; i < size(); ++i) {
    if (fingerprint_of(i) != first) return i;
  }
  return std::nullopt;
}

void Channel::swap_slots() {
  if (to_swap_) {
    const unsigned parity = sequence_ & 1;
    // After a mismatch, maybe only one of the two has used them.
    if (*to_swap_ == segment_.flag(1 - index_, parity).fingerprint) swapped_ ^= 1U << parity;
    to_swap_.reset();
  }
  if (is_swapping_) to_swap_ = fingerprint_;
}

void Channel::arrive() {
  pass(FaultPoint::kBeforePublish);
  if (to_swap_ || is_swapping_) swap_slots();
  const std::uint32_t sequence = ++sequence_;
  FlagLine& own = segment_.flag(index_, sequence & 1);
  own.fingerprint = fingerprint_;
  std::uint32_t work = 0;
  if (ended_sample_) {
    work = packed_work(std::max<std::uint64_t>(ended_sample_->work, 1));
    published_sample_ = std::exchange(ended_sample_, std::nullopt);
  }
  notes_ = {heap_.is_used() ? 1U : 0U, streamed_classes_, turning_classes_, work};
  own.notes = notes_;
  segment_.call(index_, sequence & 1).call = call_;
  FutexPlatform platform;
  FlagProtocol protocol(platform);
  protocol.publish(own.word, sequence, stores_);
  // Publishing waits for the stores, which are work, too.
  if (sample_) sample_->add_work();
  pass(FaultPoint::kAfterPublish);
}

bool Channel::all_are_here() const {
  for (int i = 0; i < size(); ++i) {
    if (!has_reached(segment_.flag(i, sequence_ & 1).word.load(std::memory_order_acquire), sequence_))
      return false;
  }
  return true;
}

std::optional<Outcome> Channel::poll_arrival() {
  if (all_are_here()) {
    all_arrived();
    return Outcome();
  }
  if (should_stop()) return give_up(Reason::kOther);
  if (!deadline_.deadline.has_passed()) return std::nullopt;
  if (all_missing_wait_for_other_hosts() && !deadline_.has_passed_by(2)) return std::nullopt;
  return give_up(Reason::kTimeout);
}

Outcome Channel::synchronize() {
  arrive();
  Outcome met = meet();
  if (met && (sample_ || published_sample_)) all_arrived();
  prefetch_next();
  return met;
}

void Channel::prefetch_next() {
  // The others have read these lines: to write them takes as long as to fetch them, which begins now.
  FlagLine& flag = segment_.flag(index_, (sequence_ + 1) & 1);
  prefetch_to_write(&flag);
  if (is_small_ || !is_fetched(chunk_bytes_) || stores_ == Stores::kStreaming) return;
  const std::byte* const slot = own_slot();
  for (std::size_t at = 0; at < chunk_bytes_; at += kLineBytes) prefetch_to_write(slot + at);
}

Outcome Channel::meet() {
  const std::uint32_t sequence = sequence_;
  if (role_.in_groups) {
    FutexPlatform platform;
    FlagProtocol protocol(platform);
    return rendezvous_in_groups(
        role_, GroupWords{segment_, sequence & 1},
        [&](SharedWord& word) { protocol.publish(word, sequence); },
        [this](SharedWord& word) { return wait_for(word); });
  }
  for (int i = 0; i < size(); ++i) {
    if (i == index_) continue;
    if (auto arrived = wait_for(segment_.flag(i, sequence & 1).word); !arrived) return arrived;
  }
  return {};
}

Outcome Channel::wait_for(SharedWord& word) {
  if (has_reached(word.load(std::memory_order_acquire), sequence_)) return {};
  if (spin_until(word, sequence_, policy_, deadline_.deadline, [this] { return should_stop(); })) return {};
  if (sequence_ != first_sequence_) return sleep_on(word);
  const std::optional<int> missing = first_missing();
  const std::int64_t began = kernel_now();
  Outcome slept = sleep_on(word);
  if (missing) waits_.add(call_.kind, members_[*missing].rank, kernel_now() - began);
  return slept;
}

std::optional<int> Channel::first_missing() const {
  for (int i = 0; i < size(); ++i) {
    if (!has_reached(segment_.flag(i, sequence_ & 1).word.load(), sequence_)) return i;
  }
  return std::nullopt;
}

Outcome Channel::sleep_on(SharedWord& word) {
  FutexPlatform platform;
  FlagProtocol protocol(platform);
  Deadline deadline = deadline_.deadline;
  bool has_grace = false;
  Interruption interruption;
  for (;;) {
    const SleepEnd end =
        protocol.sleep(word, sequence_, interruption.limit(deadline), [this] { return should_stop(); });
    if (end == SleepEnd::kReached) return {};
    if (end == SleepEnd::kStop) return give_up(Reason::kOther);
    if (interruption.is_wanted(platform.was_signalled)) return give_up(Reason::kInterrupted);
    if (end == SleepEnd::kRetry || !deadline.has_passed()) continue;
    if (has_grace || !all_missing_wait_for_other_hosts()) return give_up(Reason::kTimeout);
    // They give up a little later (wire/lane.cpp), and know which rank they wait for.
    has_grace = true;
    deadline = deadline_.later(2);
  }
}

bool Channel::all_missing_wait_for_other_hosts() const {
  for (int i = 0; i < size(); ++i) {
    if (!has_reached(segment_.flag(i, sequence_ & 1).word.load(), sequence_) &&
        !abort_.waits_for_other_host(i))
      return false;
  }
  return true;
}

Outcome Channel::give_up(Reason reason) {
  std::array<std::uint64_t, kMaxMembers / 64> missing{};
  Members awaited;
  for (int i = 0; i < size(); ++i) {
    if (!has_reached(segment_.flag(i, sequence_ & 1).word.load(), sequence_)) {
      missing[static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64);
      if (awaited.size() < kMaxAwaitedNamed) awaited.push_back(members_[i]);
    }
  }
  // All may have arrived just before the reason appeared, or a leader may be unable to release this rank.
  if (awaited.empty()) return {};
  if (reason == Reason::kInterrupted) {
    abort_.raise(AbortNotice::of(AbortReason::kInterrupted, self()));
  } else if (reason == Reason::kTimeout) {
    abort_.raise_timeout(deadline_.seconds, call_, missing);
  } else if (!abort_.is_raised()) {
    abort_.raise(AbortCause{AbortCause::Where::kLeft, *abort_.first_left(sequence_)});
  }
  return fail(with_awaited(abort_.describe(call_, true), call_, awaited));
}

}  // namespace ddl::runtime
