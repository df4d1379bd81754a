// The handshakes of sleeping, publishing, interrupting, leaving and rendezvous in groups, walked in every order; and
// that the walk finds broken ones.
#include "runtime/src/shm/flag_protocol.h"

#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/src/shm/exchange_groups.h"
#include "runtime/support/interleavings.h"
#include "support/catch.h"

using ddl::runtime::FlagProtocol;
using ddl::runtime::SleepEnd;
using ddl::runtime::test::Exploration;
using ddl::runtime::test::Explorer;
using ddl::runtime::test::World;

namespace {

/// Words whose every access is a step of the model, and a futex that loses only a wake without sleepers.
class ModelPlatform {
 public:
  class Word {
   public:
    Word(World& world, std::uint32_t value) : world_(world), value_(value) {
      world.watch([this] { return std::uint64_t{wakes_} << 32 | value_; });
    }
    Word(const Word&) = delete;
    Word& operator=(const Word&) = delete;
    std::uint32_t load() {
      world_.step();
      world_.observe(value_);
      return value_;
    }
    void store(std::uint32_t value) {
      world_.step();
      value_ = value;
    }
    std::uint32_t exchange(std::uint32_t value) {
      world_.step();
      world_.observe(value_);
      return std::exchange(value_, value);
    }
    std::uint32_t fetch_or(std::uint32_t bits) {
      world_.step();
      world_.observe(value_);
      return std::exchange(value_, value_ | bits);
    }

   private:
    friend class ModelPlatform;
    World& world_;
    std::uint32_t value_;
    unsigned wakes_ = 0;
  };
  using Deadline = int;

  explicit ModelPlatform(World& world) : world_(world) {}

  /// Like the kernel: compares and begins to sleep in one step, then sleeps until the next wake.
  bool wait(Word& word, std::uint32_t seen, Deadline) {
    world_.step();
    const bool sleeps = word.value_ == seen;
    const unsigned wakes = word.wakes_;
    world_.observe(sleeps ? std::uint64_t{wakes} << 1 | 1 : 0);
    if (!sleeps) return true;
    world_.wait_until([&word, wakes] { return word.wakes_ != wakes; });
    return true;
  }
  void wake_all(Word& word) {
    world_.step();
    ++word.wakes_;
  }

  /// Streaming stores wait in a buffer of the core, from which they reach memory at any time, at last before the end
  /// of this barrier.
  void stream(Word& word, std::uint32_t value) {
    world_.step();
    buffered_ = {&word, value};
  }
  void order_streaming_stores() { drain(); }
  void drain() {
    world_.step();
    if (buffered_.word != nullptr) std::exchange(buffered_, {}).store();
  }

 private:
  struct Buffered {
    Word* word = nullptr;
    std::uint32_t value = 0;
    void store() const { word->value_ = value; }
  };
  Buffered buffered_;
  World& world_;
};

using Word = ModelPlatform::Word;
constexpr std::uint32_t kBefore = 0xFFFFFFFEu, kAwaited = 0;  // the sequence wraps in between

/// Shared state of one execution: member 0 waits for member 1, which may leave instead, and a member may abort.
struct State {
  explicit State(World& world)
      : platform(world),
        protocol(platform),
        word(world, ddl::runtime::encode_sequence(kBefore)),
        waiters_word(world, ddl::runtime::encode_sequence(kBefore)),
        departure(world, 0),
        reason(world, 0) {}

  ModelPlatform platform;
  FlagProtocol<ModelPlatform> protocol;
  Word word, waiters_word, departure, reason;

  void publish(std::uint32_t sequence) { protocol.publish(word, sequence); }
  void abort() {
    reason.store(1);
    protocol.interrupt(word);
  }
  void leave() {
    departure.store(1);
    Word* const words[] = {&waiters_word, &word};
    if (protocol.is_missed(kAwaited, 2, [&](int i) -> Word& { return *words[i]; })) abort();
  }
  SleepEnd wait() {
    for (;;) {
      const SleepEnd end = protocol.sleep(word, kAwaited, 0, [this] { return reason.load() != 0; });
      if (end != SleepEnd::kRetry) return end;
    }
  }
  SleepEnd show_and_wait() {
    protocol.publish(waiters_word, kAwaited);
    for (;;) {
      const SleepEnd end =
          protocol.sleep(word, kAwaited, 0, [this] { return reason.load() != 0 || departure.load() != 0; });
      if (end != SleepEnd::kRetry) return end;
    }
  }
};

using Program = std::function<void(State&)>;

/// Explores programs over one State; ends collects the return values of their waits.
Exploration explore(std::vector<Program> programs) {
  return Explorer().explore([&programs](World& world) {
    auto state = std::make_shared<State>(world);
    std::vector<std::function<void()>> bound;
    for (const Program& program : programs) bound.push_back([state, &program] { program(*state); });
    return bound;
  });
}

}  // namespace

TEST_CASE("a sleeper never misses a publication") {
  std::set<SleepEnd> ends;
  const Exploration found = explore({
      [&ends](State& state) { ends.insert(state.wait()); },
      [](State& state) { state.publish(kAwaited); },
  });
  CHECK(found.deadlock.empty());
  CHECK(found.executions > 5);
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kReached});
}

namespace {

/// What a reader finds of data that were streamed before the publication.
std::set<std::uint32_t> streamed_data(ddl::runtime::Stores said) {
  constexpr std::uint32_t kData = 7;
  std::set<std::uint32_t> found;
  explore({
      [&found](State& state) {
        if (state.wait() == SleepEnd::kReached) found.insert(state.waiters_word.load());
      },
      [said](State& state) {
        state.platform.stream(state.waiters_word, kData);
        state.protocol.publish(state.word, kAwaited, said);
        state.platform.drain();
      },
  });
  return found;
}

}  // namespace

TEST_CASE("data that were streamed before a publication are there after it") {
  CHECK(streamed_data(ddl::runtime::Stores::kStreaming) == std::set<std::uint32_t>{7});
}

TEST_CASE("the walk finds a publication that does not wait for streamed data") {
  CHECK(streamed_data(ddl::runtime::Stores::kPlain) ==
        std::set<std::uint32_t>{ddl::runtime::encode_sequence(kBefore), 7});
}

TEST_CASE("a sleeper never misses an interruption") {
  std::set<SleepEnd> ends;
  const Exploration found = explore({
      [&ends](State& state) { ends.insert(state.wait()); },
      [](State& state) { state.abort(); },
  });
  CHECK(found.deadlock.empty());
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kStop});
}

TEST_CASE("an interruption and a publication that overwrites its bit never leave a sleeper behind") {
  std::set<SleepEnd> ends;
  const Exploration found = explore({
      [&ends](State& state) { ends.insert(state.wait()); },
      [](State& state) { state.publish(0xFFFFFFFFu); },  // not yet what is awaited
      [](State& state) { state.abort(); },
  });
  CAPTURE(found.deadlock);
  CHECK(found.deadlock.empty());
  CHECK(found.executions > 50);
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kStop});
}

TEST_CASE("two sleepers on one word are both woken") {
  std::set<SleepEnd> ends;
  const auto waits = [&ends](State& state) { ends.insert(state.wait()); };
  const Exploration found = explore({waits, waits, [](State& state) { state.publish(kAwaited); }});
  CHECK(found.deadlock.empty());
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kReached});
}

TEST_CASE("two sleepers on one word are both woken if its owner dies before it wakes them", "[.long]") {
  std::set<SleepEnd> ends;
  const auto waits = [&ends](State& state) { ends.insert(state.wait()); };
  const Exploration found = explore({waits, waits, [](State& state) {
                                       state.word.exchange(ddl::runtime::encode_sequence(0xFFFFFFFFu));
                                       state.abort();
                                     }});
  CHECK(found.deadlock.empty());
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kStop});
}

TEST_CASE("a member that waits for a leaving one is interrupted, by one of the two") {
  std::set<SleepEnd> ends;
  const Exploration found = explore({
      [&ends](State& state) { ends.insert(state.show_and_wait()); },
      [](State& state) { state.leave(); },
  });
  CHECK(found.deadlock.empty());
  CHECK(found.executions > 5);
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kStop});
}

TEST_CASE("the walk finds a member that reads who waits before it marks itself as left") {
  const Exploration found = explore({
      [](State& state) { (void)state.show_and_wait(); },
      [](State& state) {
        const bool is_missed = ddl::runtime::has_reached(state.waiters_word.load(), kAwaited);
        state.departure.store(1);
        if (is_missed) state.abort();
      },
  });
  CHECK_FALSE(found.deadlock.empty());
}

TEST_CASE("the walk finds a sleeper that checks for a reason before it reads the word") {
  const Exploration found = explore({
      [](State& state) {
        if (state.reason.load() != 0) return;
        const std::uint32_t seen = state.word.fetch_or(ddl::runtime::kSleeperBit) | ddl::runtime::kSleeperBit;
        if (!ddl::runtime::has_reached(seen, kAwaited)) state.platform.wait(state.word, seen, 0);
      },
      [](State& state) { state.abort(); },
  });
  CHECK_FALSE(found.deadlock.empty());
}

TEST_CASE("the walk finds an abort that wakes without changing the word") {
  const Exploration found = explore({
      [](State& state) { (void)state.wait(); },
      [](State& state) {
        state.reason.store(1);
        state.platform.wake_all(state.word);
      },
  });
  CHECK_FALSE(found.deadlock.empty());
}

TEST_CASE("the walk finds a publisher that checks for sleepers before it publishes") {
  const Exploration found = explore({
      [](State& state) { (void)state.wait(); },
      [](State& state) {
        const bool somebody_sleeps = (state.word.load() & ddl::runtime::kSleeperBit) != 0;
        state.word.store(ddl::runtime::encode_sequence(kAwaited));
        if (somebody_sleeps) state.platform.wake_all(state.word);
      },
  });
  CHECK_FALSE(found.deadlock.empty());
}

namespace {

/// The result of a wait in a model: true if the awaited sequence was reached.
struct Ended {
  bool arrived = true;
  explicit operator bool() const { return arrived; }
  bool operator!() const { return !arrived; }
};

/// Members that synchronize in groups, each with its flag and the words of a leader.
struct GroupRendezvous {
  GroupRendezvous(World& world, std::vector<int> leaders)
      : platform(world), protocol(platform), leader_of(std::move(leaders)), reason(world, 0) {
    for (std::size_t i = 0; i < 3 * leader_of.size(); ++i)
      words.emplace_back(world, ddl::runtime::encode_sequence(kBefore));
  }

  struct Words {
    GroupRendezvous& rendezvous;
    Word& flag(int i) const { return rendezvous.words[static_cast<std::size_t>(3 * i)]; }
    Word& gathered(int i) const { return rendezvous.words[static_cast<std::size_t>(3 * i + 1)]; }
    Word& released(int i) const { return rendezvous.words[static_cast<std::size_t>(3 * i + 2)]; }
  };

  /// Member i's exchange. True if everybody had shown the sequence by its end.
  Ended meet(int i) {
    const Words all{*this};
    protocol.publish(all.flag(i), kAwaited);
    return rendezvous_in_groups(
        ddl::runtime::ExchangeRole::of(leader_of, i), all,
        [this](Word& word) { protocol.publish(word, kAwaited); }, [this](Word& word) { return wait(word); });
  }
  Ended wait(Word& word) {
    for (;;) {
      const SleepEnd end = protocol.sleep(word, kAwaited, 0, [this] { return reason.load() != 0; });
      if (end != SleepEnd::kRetry) return {end == SleepEnd::kReached};
    }
  }
  bool everybody_has_shown() {
    for (int i = 0; i < static_cast<int>(leader_of.size()); ++i) {
      if (!ddl::runtime::has_reached(Words{*this}.flag(i).load(), kAwaited)) return false;
    }
    return true;
  }
  void abort() {
    reason.store(1);
    for (Word& word : words) protocol.interrupt(word);
  }

  ModelPlatform platform;
  FlagProtocol<ModelPlatform> protocol;
  std::vector<int> leader_of;
  std::deque<Word> words;
  Word reason;
};

}  // namespace

namespace {

/// All of them synchronize.
void check_rendezvous(const std::vector<int>& leader_of) {
  int ended = 0, early = 0;
  const Exploration found = Explorer().explore([&](World& world) {
    auto rendezvous = std::make_shared<GroupRendezvous>(world, leader_of);
    std::vector<std::function<void()>> programs;
    for (int i = 0; i < static_cast<int>(leader_of.size()); ++i) {
      programs.emplace_back([&, rendezvous, i] {
        if (!rendezvous->meet(i)) return;
        ++ended;
        if (!rendezvous->everybody_has_shown()) ++early;
      });
    }
    return programs;
  });
  CAPTURE(found.executions, found.states, found.deadlock);
  CHECK(found.deadlock.empty());
  CHECK(ended > 0);
  CHECK(early == 0);
}

/// One aborts instead.
void check_aborted_rendezvous(const std::vector<int>& leader_of, int absent) {
  int stopped = 0, arrived = 0;
  const Exploration found = Explorer().explore([&](World& world) {
    auto rendezvous = std::make_shared<GroupRendezvous>(world, leader_of);
    std::vector<std::function<void()>> programs;
    for (int i = 0; i < static_cast<int>(leader_of.size()); ++i) {
      programs.emplace_back([&, rendezvous, i] {
        if (i == absent) return rendezvous->abort();
        ++(rendezvous->meet(i) ? arrived : stopped);
      });
    }
    return programs;
  });
  CAPTURE(found.executions, found.states, found.deadlock);
  CHECK(found.deadlock.empty());
  CHECK(stopped > 0);
  CHECK(arrived == 0);
}

}  // namespace

TEST_CASE(
    "members that synchronize in groups all return, and none before the last has published its sequence") {
  check_rendezvous(GENERATE(std::vector{0, 0}, std::vector{0, 1}));
}

TEST_CASE("three members that synchronize in groups all return, none too early", "[.long]") {
  check_rendezvous(GENERATE(std::vector{0, 1, 0}, std::vector{0, 0, 2}));
}

TEST_CASE("an abort ends every wait of a rendezvous in groups at which a member does not arrive") {
  check_aborted_rendezvous(GENERATE(std::vector{0, 0}, std::vector{0, 1}), GENERATE(0, 1));
}

TEST_CASE("an abort ends every wait of three members that synchronize in groups", "[.long]") {
  check_aborted_rendezvous({0, 0, 2}, GENERATE(0, 1, 2));
}

TEST_CASE("sequences are compared across their wrap") {
  using ddl::runtime::encode_sequence;
  using ddl::runtime::has_reached;
  for (const std::uint32_t sequence :
       {0u, 1u, 0x1FFFFFFFu, 0x3FFFFFFFu, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    CAPTURE(sequence);
    CHECK(has_reached(encode_sequence(sequence), sequence));
    CHECK(has_reached(encode_sequence(sequence) | ddl::runtime::kInterruptedBit, sequence));
    CHECK(has_reached(encode_sequence(sequence) | ddl::runtime::kSleeperBit, sequence));
    CHECK(has_reached(encode_sequence(sequence + 2), sequence));
    CHECK_FALSE(has_reached(encode_sequence(sequence - 1), sequence));
    CHECK_FALSE(has_reached(encode_sequence(sequence - 1) | 3, sequence));
  }
}
