// The timeline of all ranks that the program itself, or its environment, asks for: rank 0 collects the events and
// writes the file. (With ddlrun's agents, --timeline-filename needs none of this: they read the rings.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/common/event_log.h"
#include "runtime/src/context/process_set.h"
#include "timeline/trace_file.h"

namespace ddl::runtime {

/// Of the world. Not thread-safe: start() and stop() are called inside a CallScope of the world, and salvage() and the
/// destructor after the last one.
class Recording {
 public:
  /// Both outlive this.
  Recording(ProcessSet& world, EventLog& log) : world_(world), log_(log) {}
  ~Recording() { log_.stop_recording(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  bool is_on() const { return is_on_; }
  const std::string& path() const { return path_; }

  /// All ranks record from now on. Collective. Path and size are those of rank 0, which checks that the file can be
  /// written.
  Outcome start(const std::string& path, std::uint64_t max_bytes, CallDeadline deadline);
  /// No rank records any more, and rank 0 has written the file. Collective; only rank 0 fails if it cannot be written.
  Outcome stop(CallDeadline deadline);
  /// The ranks cannot meet any more: rank 0 writes what those of its host have recorded. why: a clause.
  Outcome salvage(const std::string& why);

 private:
  struct Rank {
    std::string host;
    std::int64_t pid = 0;
  };

  Outcome meet(bool starts, CallDeadline deadline);
  tl::unexpected<Failure> failure(const Error& error) const;
  /// Since start(). ring: of any rank of this host, in this memory.
  timeline::RingSnapshot read(const contract::EventRing& ring, std::span<const std::byte> memory,
                              std::uint64_t first) const;
  /// The events of all ranks on rank 0, which knows how many each of them has.
  Outcome collect(const timeline::RingSnapshot& own, std::vector<timeline::RankTrace>& ranks,
                  const std::vector<std::uint64_t>& events, CallDeadline deadline);
  timeline::RankTrace trace_of(int rank) const;
  Outcome write(std::vector<timeline::RankTrace> ranks);

  ProcessSet& world_;
  EventLog& log_;
  bool is_on_ = false;
  std::string path_;
  std::optional<timeline::TraceFile> file_;  ///< of rank 0
  std::uint64_t max_bytes_ = 0;
  std::vector<Rank> ranks_;
  std::vector<std::uint64_t> first_;  ///< events of each rank before the recording
};

}  // namespace ddl::runtime
