// The flag protocol: how a member publishes a sequence, how another sleeps until it has, and how a sleeper is
// interrupted. Nothing but words and a futex; templated on both, so that a test can walk every interleaving.
//
// Publishing and sleeping. The publisher stores its word and then looks whether anybody sleeps on it; the sleeper says
// that it sleeps and then looks at the word. All four are sequentially consistent, so at least one of them sees the
// other (Dekker's handshake): either the sleeper finds the sequence reached, or the publisher wakes it. The sleeper's
// note stands in its own cache line and the publisher only reads it, so a wake-up costs a system call only when
// somebody sleeps, and nobody writes a line of another's.
//
// Interrupting. A futex wait ends only if the word changes or is woken, and a reason to stop (an abort, a member that
// left) stands elsewhere. So whoever interrupts first stores the reason, then sets a bit in the word, then wakes. A
// sleeper looks at the word, then at the reason, then sleeps only if the word is still what it saw: if it missed the
// reason, the bit comes later, and the sleep either does not begin or is woken. The owner may overwrite the bit with its
// next sequence, but that changes the word as well and wakes as well. No fences: ThreadSanitizer does not know them.
#pragma once

#include <cstdint>

#include "runtime/src/channel/flag_word.h"

namespace ddl::runtime {

enum class SleepEnd {
  kLook,     ///< the word may have changed: look again
  kReached,  ///< the sequence had been reached before sleeping
  kStop,     ///< there is a reason to stop
  kTimeout,  ///< the deadline passed
};

/// Platform has the type Word (load(), store(), fetch_or(), sequentially consistent unless told), the type Deadline,
/// wait(word, seen, deadline), which sleeps while the word equals seen and returns false when the deadline passed, and
/// wake_all(word).
template <class Platform>
class FlagProtocol {
 public:
  using Word = typename Platform::Word;
  using Deadline = typename Platform::Deadline;

  explicit FlagProtocol(Platform& platform) : platform_(platform) {}

  /// Shows sequence in the member's own word. sleeper_of(i) is the sleeper word of member i of members.
  template <class SleeperOf>
  void publish(Word& own, int own_index, std::uint32_t sequence, int members, SleeperOf sleeper_of) {
    own.store(encode_sequence(sequence));
    bool somebody_sleeps = false;
    for (int i = 0; i < members; ++i) {
      if (i != own_index && sleeper_of(i).load() == static_cast<std::uint32_t>(own_index) + 1)
        somebody_sleeps = true;
    }
    if (somebody_sleeps) platform_.wake_all(own);
  }

  /// Sleeps once until member other_index may have published sequence in its word. should_stop() looks for a reason.
  template <class ShouldStop>
  SleepEnd sleep(Word& other, int other_index, std::uint32_t sequence, Word& own_sleeper, Deadline deadline,
                 ShouldStop should_stop) {
    own_sleeper.store(static_cast<std::uint32_t>(other_index) + 1);
    const std::uint32_t seen = other.load();
    SleepEnd end = SleepEnd::kLook;
    if (has_reached(seen, sequence)) {
      end = SleepEnd::kReached;
    } else if (should_stop()) {
      end = SleepEnd::kStop;
    } else if (!platform_.wait(other, seen, deadline)) {
      end = SleepEnd::kTimeout;
    }
    own_sleeper.store(0);
    return end;
  }

  /// Ends every sleep on word. The reason has been stored before, sequentially consistent.
  void interrupt(Word& word) {
    word.fetch_or(kInterruptedBit);
    platform_.wake_all(word);
  }

 private:
  Platform& platform_;
};

}  // namespace ddl::runtime
