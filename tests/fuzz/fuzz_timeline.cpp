// The ring of events of a rank, with arbitrary bytes, as a trace. The first bytes say how large the ring is and what is
// made of it; the others are its events. The trace must be valid whatever they are.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "fuzz/require.h"
#include "timeline/clock.h"
#include "timeline/event_ring.h"
#include "timeline/trace.h"
#include "timeline/trace_checker.h"

namespace {

using namespace ddl::timeline;  // NOLINT(google-build-using-namespace): this program is about nothing else
using ddl::contract::Event;
using ddl::contract::EventRing;

struct FuzzHead {
  std::uint8_t capacity;  ///< its logarithm, modulo 6
  std::uint8_t kept;      ///< as it is, or the capacity if 0
  std::uint8_t count;
  std::uint8_t flags;
  std::uint32_t max_bytes;
  std::int64_t origin;
  std::int64_t sample[6];
};

enum Flag : std::uint8_t {
  kAnyNumbers = 1,  ///< numbers of events are not corrected
  kIsCompared = 2,  ///< the times go through a ClockMap
  kIsUnaligned = 4,
  kIsUnchecked = 8,  ///< the trace gets the events as they are, not as the reader of the ring gives them
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzHead head;
  if (size < sizeof head) return 0;
  std::memcpy(&head, data, sizeof head);
  data += sizeof head;
  size -= sizeof head;

  const std::uint32_t capacity = 1U << head.capacity % 6;
  const std::size_t bytes = EventRing::bytes_for(capacity);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, bytes), &std::free);
  std::memset(memory.get(), 0, bytes);
  const std::span<std::byte> span(static_cast<std::byte*>(memory.get()), bytes);
  EventRing& ring = make_ring(span, capacity, capacity);
  if (head.kept != 0) ring.kept = head.kept;
  ring.count = head.count;
  ring.clock.count = 2;
  ring.clock.peer = 1;
  for (std::size_t i = 0; i < 6; ++i) ring.clock.samples[i] = head.sample[i];
  const std::size_t used = std::min(size, std::size_t{capacity} * sizeof(Event));
  std::memcpy(span.data() + EventRing::kHeadBytes, data, used);
  if ((head.flags & kAnyNumbers) == 0) {
    for (std::uint64_t number = 1; number <= head.count; ++number)
      std::memcpy(span.data() + EventRing::kHeadBytes + (number - 1) % capacity * sizeof(Event), &number,
                  sizeof number);
  }

  RankTrace rank;
  rank.host = std::string(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 9));
  rank.ring = read_ring(ring, span, 1000);
  require(rank.ring.events.size() <= capacity);
  for (const Event& event : rank.ring.events) require(event.begin > 0 && event.kind <= Event::kLastKind);
  if ((head.flags & kIsUnchecked) != 0) {
    rank.ring.events.resize(used / sizeof(Event));
    if (used >= sizeof(Event))
      std::memcpy(static_cast<void*>(rank.ring.events.data()), data, rank.ring.events.size() * sizeof(Event));
  }
  if ((head.flags & kIsCompared) != 0)
    rank.clock = Alignment({std::make_shared<const ClockMap>(rank.ring.samples)});
  if ((head.flags & kIsUnaligned) != 0) rank.clock = Alignment(rank.host + "?", head.origin);
  const RankEvents events = trace_events(rank, head.origin, head.max_bytes);
  require(events.written + events.dropped == rank.ring.events.size());
  for (const std::string& error : ddl::test::event_errors(events.text)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    std::abort();
  }
  return 0;
}
