// The file with what all ranks of a job have done, in the JSON Object Format of Chrome Trace Events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "timeline/draft_file.h"
#include "timeline/trace.h"

namespace ddl::timeline {

struct TraceHost {
  std::string name;
  Alignment clock;
};

/// What all ranks of a trace have in common.
struct TraceJob {
  std::vector<TraceHost> hosts;
  std::size_t ranks = 0;    ///< that will be added
  std::int64_t origin = 0;  ///< JobClocks::origin
  std::uint64_t max_bytes =
      0;  ///< of the file before it is compressed; each rank may use the same part of it
};

/// A trace that is being written, one rank after the other: one rank's text is in memory at a time. The path gets a
/// complete file, or keeps what was there before (DraftFile). Not thread-safe. add() and finish() write and compress,
/// which takes a second for some hundred thousand events. Errors name the path.
class TraceFile {
 public:
  /// Checks that the file can be written, and leaves nothing behind. See DraftFile::plan().
  static Result<TraceFile> create(const std::string& path, const std::string& zlib = Zlib::kLibrary);

  /// Before the first rank.
  Status begin(const TraceJob& job);
  /// In any order of ranks. An error ends the file: every later call returns one.
  Status add(const RankTrace& rank);
  /// Puts the file at its path. Returns what a reader of it should know, as sentences: which events are not in it, and
  /// whose times cannot be compared.
  Result<std::vector<std::string>> finish();

  const std::string& path() const { return file_->path(); }

 private:
  explicit TraceFile(std::unique_ptr<DraftFile> file) : file_(std::move(file)) {}

  std::unique_ptr<DraftFile> file_;
  std::int64_t origin_ = 0;
  std::uint64_t max_bytes_ = 0;    // of the file
  std::uint64_t max_of_rank_ = 0;  // bytes
  bool has_ranks_ = false;
  // Of all ranks.
  std::uint64_t seen_ = 0;         // events that the ranks have had
  std::uint64_t overwritten_ = 0;  // of them, in their rings
  std::uint64_t dropped_ = 0;
  std::size_t ranks_dropped_ = 0;
  // What is said of hosts and ranks, as JSON objects.
  std::string hosts_, incomplete_, missing_;
  std::string unaligned_;  // a sentence
};

}  // namespace ddl::timeline
