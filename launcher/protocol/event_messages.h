// The messages by which the head gets what ranks have recorded (contract/event_ring.h).
#pragma once

#include <cstdint>
#include <string>

#include "timeline/event_ring.h"

namespace ddl::launcher::message {

// ---- head to agent ----

/// Answer with Events of this rank. The first question of an id and rank makes the agent copy its ring; later ones get
/// further pieces of that copy.
struct AskEvents {
  std::int64_t id = 0;
  int rank = 0;
  std::int64_t latest = 0;   ///< the number of events that are wanted
  std::int64_t from = 0;     ///< an index in the copy
  bool of_timeline = false;  ///< only events that began since RecordTimeline
  bool operator==(const AskEvents&) const = default;
};
/// All ranks record a timeline from now on, of this number of events each; 0: no longer.
struct RecordTimeline {
  std::int64_t events = 0;
  bool operator==(const RecordTimeline&) const = default;
};

// ---- agent to head ----

/// A piece of what a rank has recorded.
struct Events {
  std::int64_t id = 0;
  int rank = 0;
  std::int64_t from = 0;      ///< index of the first one
  std::int64_t total = 0;     ///< of the copy
  std::int64_t count = 0;     ///< events that the rank has ever had
  std::int64_t earliest = 0;  ///< when the first one of its ring began; 0: there is none
  std::int64_t now = 0;       ///< when the copy was made, by CLOCK_MONOTONIC in nanoseconds
  std::int64_t joining_since =
      0;  ///< since when the rank has been in ddl_init, by the same clock; 0: it is not
  std::int64_t steps = 0;
  int clock_peer = -1;
  std::string samples;  ///< contract::ClockSample, one after the other, as they are in memory
  std::string events;   ///< contract::Event, the same
  bool operator==(const Events&) const = default;
};

/// Events without the events from the index from on, of which at most this number is added.
Events events_message(const AskEvents& ask, const timeline::RingSnapshot& ring, std::size_t most);
/// Adds a piece to what has come before. False if it does not follow.
bool add_piece(const Events& piece, timeline::RingSnapshot& ring);

}  // namespace ddl::launcher::message
