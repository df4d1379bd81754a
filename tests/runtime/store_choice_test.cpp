// Which stores the ranks of a channel use: the choice from made-up costs, the measured round trip, and that every
// collective gives the same results with each.
#include "runtime/src/shm/store_choice.h"

#include <array>
#include <span>
#include <thread>
#include <vector>

#include "runtime/src/collective/instruction_set.h"
#include "support/catch.h"

using ddl::runtime::CallKind;
using ddl::runtime::chunk_class;
using ddl::runtime::StoreChoice;
using ddl::runtime::Stores;

namespace {

constexpr int kClass = 7;
constexpr std::uint32_t kBit = 1u << kClass;

/// Ranks whose samples cost what they cost with plain and with streaming stores. Like those of a channel they use what
/// was chosen two samples ago.
struct Samples {
  StoreChoice choice{Stores::kPlain, StoreChoice::Origin::kUnknown};
  double plain = 1, streaming = 1;
  std::array<std::uint32_t, 2> published{choice.streamed_classes(), choice.streamed_classes()};

  /// The number of samples with streaming stores.
  int run(int samples, CallKind kind = CallKind::kAllreduce) {
    int streamed = 0;
    for (int sample = 0; sample < samples; ++sample) {
      const bool streams = (published[0] & kBit) != 0;
      streamed += streams ? 1 : 0;
      choice.add_sample(kClass, kind, streams ? Stores::kStreaming : Stores::kPlain,
                        streams ? streaming : plain);
      published = {published[1], choice.streamed_classes()};
    }
    return streamed;
  }
};

}  // namespace

TEST_CASE("chunks are classified by powers of two") {
  CHECK(!chunk_class(0));
  CHECK(!chunk_class(1023));
  CHECK(chunk_class(1024) == 0);
  CHECK(chunk_class(2047) == 0);
  CHECK(chunk_class(128 << 10) == 7);
  CHECK(chunk_class(512 << 10) == 9);
  CHECK(chunk_class(std::size_t{1} << 40) == 9);
}

TEST_CASE("the work of a sample keeps its digits, however long it takes") {
  using ddl::runtime::packed_work, ddl::runtime::unpacked_work;
  CHECK(packed_work(0) == 0);
  for (std::uint64_t ticks = 1; ticks < std::uint64_t{1} << 44; ticks = ticks * 5 / 4 + 1) {
    INFO(ticks);
    const std::uint32_t packed = packed_work(ticks);
    CHECK(packed != 0);
    CHECK(packed >> ddl::runtime::FlagLine::kWorkBits == 0);
    CHECK(unpacked_work(packed) <= ticks);
    CHECK(ticks - unpacked_work(packed) <= ticks / 4096);
  }
  CHECK(packed_work(~std::uint64_t{0}) == packed_work((std::uint64_t{1} << 44) - 1));
}

TEST_CASE("faster stores are found within a few samples, and kept") {
  Samples far{.plain = 5, .streaming = 1};
  far.run(24);
  CHECK(far.run(1000) > 970);
  CHECK((far.choice.streamed_classes() & ~kBit) == 0);  // nothing was measured for other sizes
}

TEST_CASE("slower stores are tried ever more rarely") {
  Samples near{.plain = 1, .streaming = 2};
  CHECK(near.run(200) <= 12);
  near.run(5000);
  CHECK(near.run(4000) <= 15);
}

TEST_CASE("a small difference changes nothing") {
  Samples alike{.plain = 1, .streaming = 0.95};
  alike.run(3000);
  CHECK(alike.run(1000) < 20);
}

TEST_CASE("ranks that move apart are noticed soon, and ranks that come together in time") {
  Samples moved{.plain = 1, .streaming = 2};
  moved.run(5000);
  moved.plain = 5;
  moved.streaming = 1.2;
  moved.run(40);
  CHECK(moved.run(100) > 90);
  moved.plain = 1;
  moved.streaming = 1.2;
  moved.run(2500);
  CHECK(moved.run(500) < 20);
}

TEST_CASE("calls of another kind are not compared") {
  Samples mixed{.plain = 1, .streaming = 2};
  for (int i = 0; i < 2000; ++i) {
    mixed.run(1, CallKind::kAllreduce);
    // An alltoall costs more; if it were taken for the other stores, the choice would turn.
    mixed.plain = 4;
    mixed.streaming = 8;
    mixed.run(1, CallKind::kAlltoall);
    mixed.plain = 1;
    mixed.streaming = 2;
  }
  CHECK(mixed.run(1000) < 40);
}

TEST_CASE("a comparison that the program's calls do not complete is given up") {
  Samples samples{.plain = 1, .streaming = 5};
  samples.run(8);
  CHECK(samples.run(300, CallKind::kBroadcast) < 150);
}

TEST_CASE("stores that the user has chosen stay") {
  StoreChoice fixed(Stores::kStreaming, StoreChoice::Origin::kGiven);
  for (int i = 0; i < 100; ++i) fixed.add_sample(kClass, CallKind::kAllreduce, Stores::kStreaming, i);
  CHECK(fixed.streamed_classes() == (1u << ddl::runtime::kChunkClasses) - 1);
}

TEST_CASE("two ranks swap their slots or take turns, whichever is faster, for chunks from 16 KiB on") {
  using ddl::runtime::Slots;
  using Origin = StoreChoice::Origin;
  constexpr int kSwappable = ddl::runtime::kFirstSwappable;
  StoreChoice near(Stores::kPlain, Origin::kMeasured);
  CHECK(near.turning_classes() == 0);
  for (int sample = 0; sample < 60; ++sample) {
    const bool turns = (near.turning_classes() & 0b10) != 0;
    near.add_sample(kSwappable + 1, CallKind::kAllreduce, turns ? Slots::kInTurns : Slots::kSwapped,
                    turns ? 1 : 2);
  }
  CHECK(near.turning_classes() == 0b10);
  CHECK(near.streamed_classes() == 0);
  CHECK(near.describe() == "plain stores; two ranks take turns with chunks from 32 KiB to twice as much");

  // Ranks that are far apart begin with streaming stores, for which each needs its own places.
  StoreChoice far(Stores::kStreaming, Origin::kMeasured);
  CHECK(far.turning_classes() == 0b111);
  int swapped = 0;
  for (int sample = 0; sample < 60; ++sample) {
    const bool turns = (far.turning_classes() & 1) != 0;
    swapped += turns ? 0 : 1;
    far.add_sample(kSwappable, CallKind::kAllreduce, turns ? Slots::kInTurns : Slots::kSwapped,
                   turns ? 2 : 1);
  }
  CHECK(swapped > 35);
  CHECK(far.turning_classes() == 0b110);
}

TEST_CASE("stores that the user has chosen decide on slots only if they are streaming") {
  using ddl::runtime::Slots;
  StoreChoice plain(Stores::kPlain, StoreChoice::Origin::kGiven);
  StoreChoice streaming(Stores::kStreaming, StoreChoice::Origin::kGiven);
  CHECK_FALSE(plain.has_fixed_slots());
  for (int sample = 0; sample < 60; ++sample) {
    const bool turns = (plain.turning_classes() & 1) != 0;
    plain.add_sample(ddl::runtime::kFirstSwappable, CallKind::kAllgather,
                     turns ? Slots::kInTurns : Slots::kSwapped, turns ? 1 : 2);
    streaming.add_sample(ddl::runtime::kFirstSwappable, CallKind::kAllgather, Slots::kInTurns, 1);
  }
  CHECK(plain.turning_classes() == 1);
  CHECK(streaming.turning_classes() == 0b111);
}

TEST_CASE("the first guess is streaming stores for ranks that are far apart only") {
  using std::chrono::nanoseconds;
  CHECK(ddl::runtime::stores_at(std::nullopt) == Stores::kPlain);
  CHECK(ddl::runtime::stores_at(nanoseconds(80)) == Stores::kPlain);
  CHECK(ddl::runtime::stores_at(nanoseconds(400)) == Stores::kStreaming);
}

TEST_CASE("chunks whose lines are fetched begin with plain stores, however far apart ranks are") {
  using Origin = StoreChoice::Origin;
  constexpr std::uint32_t kAll = (1u << ddl::runtime::kChunkClasses) - 1;
  constexpr std::uint32_t kFetched = 0b1111;  // below 16 KiB
  CHECK(chunk_class((16 << 10) - 1) == 3);
  CHECK(StoreChoice(Stores::kStreaming, Origin::kMeasured).streamed_classes() == (kAll & ~kFetched));
  CHECK(StoreChoice(Stores::kStreaming, Origin::kGiven).streamed_classes() == kAll);
  CHECK(StoreChoice(Stores::kPlain, Origin::kMeasured).streamed_classes() == 0);
}

namespace {

struct SegmentOf {
  struct alignas(ddl::runtime::kLineBytes) Line {
    std::byte bytes[ddl::runtime::kLineBytes];
  };
  explicit SegmentOf(int members)
      : lines(ddl::runtime::Segment::bytes_for(members, {}) / sizeof(Line) + 1),
        segment(ddl::runtime::Segment::create(
            std::as_writable_bytes(std::span(lines)).first(ddl::runtime::Segment::bytes_for(members, {})),
            members, {})) {}
  std::vector<Line> lines;
  ddl::runtime::Segment segment;
};

}  // namespace

TEST_CASE("the round trip is measured between the first member and others") {
  constexpr int kMembers = 3;
  SegmentOf memory(kMembers);
  std::array<std::optional<std::chrono::nanoseconds>, kMembers> found;
  std::vector<std::thread> members;
  for (int i = 0; i < kMembers; ++i)
    members.emplace_back(
        [&, i] { found[static_cast<std::size_t>(i)] = ddl::runtime::longest_round_trip(memory.segment, i); });
  for (std::thread& member : members) member.join();
  // Without a CPU for each thread there may be no result in time.
  if (found[0]) CHECK(found[0]->count() > 0);
  CHECK(!found[1]);
  CHECK(!found[2]);
}

TEST_CASE("a member that does not take part in the round trip keeps nobody waiting") {
  SegmentOf memory(2);
  CHECK(!ddl::runtime::longest_round_trip(memory.segment, 0));
  CHECK(!ddl::runtime::longest_round_trip(memory.segment, 1));
}

TEST_CASE("streaming copies store every byte, and no other") {
  for (const auto set : ddl::runtime::instruction_sets()) {
    const auto stream = ddl::runtime::kernels_of(set).stream;
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 200, 1000, 4096, 4097}) {
      for (const std::size_t from : {0, 1, 8, 63}) {
        for (const std::size_t to : {0, 1, 4, 60, 63}) {
          std::vector<std::byte> source(bytes + 64), target(bytes + 192, std::byte{0xEE});
          for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
          auto expected = target;
          std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                      expected.begin() + static_cast<std::ptrdiff_t>(64 + to));
          stream(source.data() + from, target.data() + 64 + to, bytes);
          CAPTURE(static_cast<int>(set), bytes, from, to);
          REQUIRE(target == expected);
        }
      }
    }
  }
}
