// Flags in shared memory: how a rank publishes a sequence number, and how another sleeps (futex) until it has.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {

// How a sequence number is encoded in a flag word, which is also a futex.
//
// Bit 0 means "interrupted": the rank that aborts the group sets it, so that the word differs from what a sleeper
// saw. Bit 1 means "a rank may sleep on this word": a sleeper sets it, and the word's owner clears it with its next
// sequence. The other 30 bits are the low bits of the sequence. Sequences wrap, so they are compared by signed
// difference.

inline constexpr std::uint32_t kInterruptedBit = 1;
inline constexpr std::uint32_t kSleeperBit = 2;

constexpr std::uint32_t encode_sequence(std::uint32_t sequence) { return sequence << 2; }

/// True if the word holds this sequence or a later one. Valid while they are less than 2^29 apart.
constexpr bool has_reached(std::uint32_t word, std::uint32_t sequence) {
  return static_cast<std::int32_t>((word & ~(kInterruptedBit | kSleeperBit)) - encode_sequence(sequence)) >=
         0;
}

// The flag protocol: how a member publishes a sequence, how another sleeps until it has, how a sleeper is
// interrupted, and how a member leaves. It uses only words and a futex and is templated on both, so a test can run
// every interleaving.
//
// Publishing and sleeping. A word has one owner, who publishes by exchanging its value. A rank that is about to sleep
// on it first sets a bit in it, and sleeps only if the word still has the value that it then saw. The bit is set
// either before the owner's exchange, which finds it and wakes, or after it, and then the sleeper has seen the
// sequence. So the cost of publishing does not depend on the number of waiting ranks, it is a system call only if a
// rank may sleep, and only sleepers write a line of another rank.
//
// Interrupting. A futex wait ends only if the word changes or is woken, and a reason to stop (an abort) is stored
// elsewhere. So the interrupting rank first stores the reason, then sets another bit in the word, then wakes. A
// sleeper reads the word, then the reason, then sleeps only if the word still has the value that it saw: if it missed
// the reason, the bit is set later, and the sleep either does not begin or is woken. The owner may overwrite the bit
// with its next sequence, but that changes the word as well and wakes as well. The wake does not depend on the
// sleepers' bit: an owner may have been killed after it cleared the bit and before it woke the sleepers.
//
// Leaving. A member that leaves publishes no further sequence, so a member that has published the next one would wait
// for ever. The leaving member marks itself as left, then reads the words of the others; a waiting member has
// published its sequence, then checks whether a member has left, before it sleeps. At least one of the two sees the
// other (Dekker's handshake), and interrupts all.
//
// All of these accesses are sequentially consistent. No fences: ThreadSanitizer does not support them.

// Streaming stores. A store to the word releases what its owner has stored before, but not stores that went past the
// caches: neither the memory model of C++ nor ThreadSanitizer knows these. An owner that has used some says so when it
// publishes, and the platform's barrier comes first.

enum class SleepEnd {
  kRetry,    ///< the word may have changed: check again
  kReached,  ///< the sequence had been reached before sleeping
  kStop,     ///< there is a reason to stop
  kTimeout,  ///< the deadline passed
};

/// Platform has the type Word (load(), exchange(), fetch_or(), sequentially consistent by default), the type
/// Deadline, wait(word, seen, deadline), which sleeps while the word equals seen and returns false when the deadline
/// passed, wake_all(word), and order_streaming_stores(), after which earlier streaming stores are visible before later
/// stores.
template <class Platform>
class FlagProtocol {
 public:
  using Word = typename Platform::Word;
  using Deadline = typename Platform::Deadline;

  explicit FlagProtocol(Platform& platform) : platform_(platform) {}

  /// Publishes sequence in a word that the caller owns. stores: how it has stored since its last publication.
  void publish(Word& own, std::uint32_t sequence, Stores stores = Stores::kPlain) {
    if (stores == Stores::kStreaming) platform_.order_streaming_stores();
    if ((own.exchange(encode_sequence(sequence)) & kSleeperBit) != 0) platform_.wake_all(own);
  }

  /// Sleeps once until another may have published sequence in its word. should_stop() checks for a reason to stop.
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

  /// After the caller has marked itself as left; next would be its next sequence. Whether one of the members, whose
  /// word for that sequence is word_of(i), has published it and would wait for ever.
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

  /// Sleeps while word == seen. Returns false when the deadline passed; true otherwise, also after a spurious wake and
  /// after a signal.
  bool wait(Word& word, std::uint32_t seen, Deadline deadline);
  bool was_signalled = false;  ///< a signal has ended the last wait
  /// Wakes all threads of all processes that sleep on word.
  void wake_all(Word& word);
  void order_streaming_stores() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_sfence();
#elif defined(__aarch64__)
    asm volatile("dmb ishst" ::: "memory");
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
};

}  // namespace ddl::runtime
