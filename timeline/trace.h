// What a rank has done as Chrome Trace Events, which Perfetto shows.
//
// A rank is a process. It has a track for each thread of the program that has called libddl, one for the engine of
// named tensors of each process set, and one for what each set moves between hosts. Named tensors overlap, so they are
// asynchronous events; each has the time in which it waits for the other ranks and the call that carries it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "timeline/clock.h"
#include "timeline/event_ring.h"

namespace ddl::timeline {

/// A rank as a trace shows it.
struct RankTrace {
  std::int32_t rank = 0;  ///< of the job
  std::string name;       ///< what it is called; "": "rank" and the number
  std::string host;       ///< its name
  std::int64_t pid = 0;   ///< 0: not known
  std::string missing;    ///< why its events are not known, as a clause; "": they are
  /// What became of the rank, as a clause: the reason why events have not ended. "": it was still running.
  std::string fate;
  RingSnapshot ring;
  /// When the ring was read, or the rank ended, in nanoseconds of the rank's clock: what has not ended lasts until then.
  /// 0: not known; it lasts until the last known thing of the rank happened.
  std::int64_t read_at = 0;
  Alignment clock;  ///< of its host
};

struct RankEvents {
  std::string text;         ///< JSON objects, separated by ",\n"; not empty
  std::size_t written = 0;  ///< events of the ring that are in it
  std::size_t dropped = 0;  ///< the oldest ones, which would have made it too long
};

/// Whatever the ring contains, the text is valid JSON in UTF-8. On each track, events are nested or disjoint: an event
/// that ends after the one that it began in is cut. Every event ends: one that has not ended does so at read_at, with an
/// argument "unfinished". origin: what is shown as time 0, by the reference (JobClocks). max_bytes: of the text, but the names of rank and tracks, at most some 50 KB, are always written.
RankEvents trace_events(const RankTrace& rank, std::int64_t origin, std::size_t max_bytes);

}  // namespace ddl::timeline
