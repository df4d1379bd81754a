// Flags in shared memory: how a rank shows a sequence number, and how another sleeps (futex) until it has.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace ddl::runtime {

// How a sequence number stands in a flag word, which is also a futex.
//
// Bit 0 says "interrupted": whoever aborts the group sets it, so that the word differs from what a sleeper saw. Bit 1
// says "somebody may sleep on this": a sleeper sets it, the word's owner takes it away with its next sequence. The
// other 30 bits are the low bits of the sequence. Sequences wrap, so they are compared by signed difference.

inline constexpr std::uint32_t kInterruptedBit = 1;
inline constexpr std::uint32_t kSleeperBit = 2;

constexpr std::uint32_t encode_sequence(std::uint32_t sequence) { return sequence << 2; }

/// True if the word shows this sequence or a later one. Valid while they are less than 2^29 apart.
constexpr bool has_reached(std::uint32_t word, std::uint32_t sequence) {
  return static_cast<std::int32_t>((word & ~(kInterruptedBit | kSleeperBit)) - encode_sequence(sequence)) >=
         0;
}

// The flag protocol: how a member publishes a sequence, how another sleeps until it has, how a sleeper is interrupted,
// and how a member leaves. Nothing but words and a futex; templated on both, so that a test can walk every interleaving.
//
// Publishing and sleeping. A word has one owner, who publishes by exchanging its value. Who is about to sleep on it first
// sets a bit in it, and sleeps only if the word is still what it then saw. The bit comes either before the owner's
// exchange, which finds it and wakes, or after it, and then the sleeper has seen the sequence. So to publish costs the
// same whoever waits, a system call only if somebody may sleep, and nobody but a sleeper writes a line of another's.
//
// Interrupting. A futex wait ends only if the word changes or is woken, and a reason to stop (an abort) stands elsewhere.
// So whoever interrupts first stores the reason, then sets another bit in the word, then wakes. A sleeper looks at the
// word, then at the reason, then sleeps only if the word is still what it saw: if it missed the reason, the bit comes
// later, and the sleep either does not begin or is woken. The owner may overwrite the bit with its next sequence, but
// that changes the word as well and wakes as well. The wake does not ask for the sleepers' bit: an owner may have been
// killed after it took the bit away and before it woke anybody.
//
// Leaving. Who leaves shows no further sequence, so whoever has shown the next one waits in vain. The one that leaves
// says so, then looks at the words of the others; one that waits has shown its sequence, then looks whether somebody has
// left, before it sleeps. At least one of the two sees the other (Dekker's handshake), and interrupts everybody.
//
// All of these are sequentially consistent. No fences: ThreadSanitizer does not know them.

enum class SleepEnd {
  kRetry,    ///< the word may have changed: look again
  kReached,  ///< the sequence had been reached before sleeping
  kStop,     ///< there is a reason to stop
  kTimeout,  ///< the deadline passed
};

/// Platform has the type Word (load(), exchange(), fetch_or(), sequentially consistent unless told), the type Deadline,
/// wait(word, seen, deadline), which sleeps while the word equals seen and returns false when the deadline passed, and
/// wake_all(word).
template <class Platform>
class FlagProtocol {
 public:
  using Word = typename Platform::Word;
  using Deadline = typename Platform::Deadline;

  explicit FlagProtocol(Platform& platform) : platform_(platform) {}

  /// Shows sequence in a word of the caller's own.
  void publish(Word& own, std::uint32_t sequence) {
    if ((own.exchange(encode_sequence(sequence)) & kSleeperBit) != 0) platform_.wake_all(own);
  }

  /// Sleeps once until another may have published sequence in its word. should_stop() looks for a reason.
  template <class ShouldStop>
  SleepEnd sleep(Word& other, std::uint32_t sequence, Deadline deadline, ShouldStop should_stop) {
    std::uint32_t seen = other.load();
    if (has_reached(seen, sequence)) return SleepEnd::kReached;
    if ((seen & kSleeperBit) == 0) {
      seen = other.fetch_or(kSleeperBit) | kSleeperBit;
      if (has_reached(seen, sequence)) return SleepEnd::kReached;
    }
    if (should_stop()) return SleepEnd::kStop;
    return platform_.wait(other, seen, deadline) ? SleepEnd::kRetry : SleepEnd::kTimeout;
  }

  /// Ends every sleep on word. The reason has been stored before.
  void interrupt(Word& word) {
    word.fetch_or(kInterruptedBit);
    platform_.wake_all(word);
  }

  /// After the caller has said that it leaves, when next would be its next sequence: whether one of the members, whose
  /// word for that sequence is word_of(i), waits for it in vain.
  template <class WordOf>
  static bool is_missed(std::uint32_t next, int members, WordOf word_of) {
    for (int i = 0; i < members; ++i) {
      if (has_reached(word_of(i).load(), next)) return true;
    }
    return false;
  }

 private:
  Platform& platform_;
};

// Sleeping on a word in shared memory (futex(2)), across processes: never FUTEX_PRIVATE.

/// The platform of FlagProtocol for real words and the kernel.
struct FutexPlatform {
  using Word = std::atomic<std::uint32_t>;
  using Deadline = ddl::Deadline;

  /// Sleeps while word == seen. Returns false when the deadline passed; true otherwise, also without a reason.
  bool wait(Word& word, std::uint32_t seen, Deadline deadline);
  /// Wakes all threads of all processes that sleep on word.
  void wake_all(Word& word);
};

}  // namespace ddl::runtime
