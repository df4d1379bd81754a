// The events of a timeline that ddlrun or libddl has written, read from its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::report {

/// What all ranks of a job did. Texts are valid UTF-8, and otherwise as the file has them.
struct Timeline {
  /// What events are called. Events that are called the same share one.
  struct Title {
    std::string name;
    std::string category;    ///< "call", "wait", "program", "engine", "wire", "tensor", ...
    bool is_moment = false;  ///< without a duration
  };
  /// Times are in nanoseconds, and not negative; ends are below 2^63.
  struct Event {
    std::int64_t begin = 0;
    std::int64_t duration = 0;
    std::int64_t waited = 0;        ///< of a named tensor: until its call began, at most the duration
    std::uint64_t call_number = 0;  ///< 0: none
    std::uint32_t title = 0;        ///< index in titles
    std::uint32_t details = 0;      ///< index in details
    std::int64_t end() const { return begin + duration; }
  };
  struct Track {
    std::string name;
    bool is_of_tensors = false;
    std::vector<Event> events;  ///< by begin; of those that begin together, the longest first
  };
  struct Rank {
    std::string name;
    std::string note;  ///< why its times or events are not as those of others; "": they are
    std::vector<Track> tracks;
  };

  std::vector<Rank> ranks;
  std::vector<Title> titles;
  /// What else is said about events, as JSON: [["bytes",4000],["op","sum"]]. Events with the same share one.
  std::vector<std::string> details;
  std::vector<std::string> notes;  ///< sentences: what is not in the timeline
  std::string version;             ///< of ddlrun or libddl

  std::size_t count() const;  ///< of events
};

/// Fills a part of the buffer and returns its size; 0: there is no more.
using ReadSome = std::function<Result<std::size_t>(std::span<char> buffer)>;

/// The most bytes that read_timeline() reads. A browser would not show more events well.
inline constexpr std::uint64_t kMostTimelineBytes = std::uint64_t{1} << 30;

/// Reads the text of a timeline to its end. It is never in memory as a whole; 40 bytes are, for each event. Names and
/// details are cut after 500 bytes. Error: it is not valid JSON, is longer than most_bytes, or is no timeline.
Result<Timeline> read_timeline(const ReadSome& read_some, std::uint64_t most_bytes = kMostTimelineBytes);

}  // namespace ddl::report
