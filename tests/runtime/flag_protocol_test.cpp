// The handshake of sleeping, publishing and interrupting, walked in every order; and that the walk finds a broken one.
#include "runtime/src/channel/flag_protocol.h"

#include <memory>
#include <set>

#include "runtime/support/interleavings.h"
#include "support/catch.h"

using ddl::runtime::FlagProtocol;
using ddl::runtime::SleepEnd;
using ddl::runtime::test::Exploration;
using ddl::runtime::test::Explorer;
using ddl::runtime::test::World;

namespace {

/// Words whose every access is a step of the model, and a futex that forgets nothing but a missed wake.
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
    void fetch_or(std::uint32_t bits) {
      world_.step();
      value_ |= bits;
    }

   private:
    friend class ModelPlatform;
    World& world_;
    std::uint32_t value_;
    unsigned wakes_ = 0;
  };
  using Deadline = int;

  explicit ModelPlatform(World& world) : world_(world) {}

  /// As the kernel does it: compares and begins to sleep in one step, then sleeps until the next wake.
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

 private:
  World& world_;
};

using Word = ModelPlatform::Word;
constexpr std::uint32_t kBefore = 0xFFFFFFFEu, kAwaited = 0;  // the sequence wraps in between

/// Shared state of one execution: member 0 waits for member 1, and somebody may abort.
struct State {
  explicit State(World& world)
      : platform(world),
        protocol(platform),
        word(world, ddl::runtime::encode_sequence(kBefore)),
        sleeper(world, 0),
        publisher_sleeper(world, 0),
        reason(world, 0) {}

  ModelPlatform platform;
  FlagProtocol<ModelPlatform> protocol;
  Word word, sleeper, publisher_sleeper, reason;

  void publish(std::uint32_t sequence) {
    protocol.publish(word, 1, sequence, 2,
                     [this](int i) -> Word& { return i == 0 ? sleeper : publisher_sleeper; });
  }
  void abort() {
    reason.store(1);
    protocol.interrupt(word);
  }
  SleepEnd wait() {
    for (;;) {
      const SleepEnd end =
          protocol.sleep(word, 1, kAwaited, sleeper, 0, [this] { return reason.load() != 0; });
      if (end != SleepEnd::kLook) return end;
    }
  }
};

using Program = std::function<void(State&)>;

/// Explores programs over one State; ends collects what their waits returned.
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
  CHECK(found.executions > 20);
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kReached});
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
  CHECK(found.executions > 500);
  CHECK(ends == std::set<SleepEnd>{SleepEnd::kStop});
}

TEST_CASE("the walk finds a sleeper that looks for a reason before it looks at the word") {
  const Exploration found = explore({
      [](State& state) {
        state.sleeper.store(2);
        if (state.reason.load() != 0) return;
        const std::uint32_t seen = state.word.load();
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

TEST_CASE("the walk finds a publisher that looks for sleepers before it publishes") {
  const Exploration found = explore({
      [](State& state) { (void)state.wait(); },
      [](State& state) {
        const bool somebody_sleeps = state.sleeper.load() == 2;
        state.word.store(ddl::runtime::encode_sequence(kAwaited));
        if (somebody_sleeps) state.platform.wake_all(state.word);
      },
  });
  CHECK_FALSE(found.deadlock.empty());
}

TEST_CASE("sequences are compared across their wrap") {
  using ddl::runtime::encode_sequence;
  using ddl::runtime::has_reached;
  for (const std::uint32_t sequence : {0u, 1u, 0x3FFFFFFFu, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    CAPTURE(sequence);
    CHECK(has_reached(encode_sequence(sequence), sequence));
    CHECK(has_reached(encode_sequence(sequence) | ddl::runtime::kInterruptedBit, sequence));
    CHECK(has_reached(encode_sequence(sequence + 2), sequence));
    CHECK_FALSE(has_reached(encode_sequence(sequence - 1), sequence));
    CHECK_FALSE(has_reached(encode_sequence(sequence - 2) | ddl::runtime::kInterruptedBit, sequence));
  }
}
