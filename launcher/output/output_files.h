// What each rank wrote, in a file of its own: DIR/rank.<padded>/stdout and stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "launcher/output/blocking_writer.h"
#include "launcher/output/output_stream.h"
#include "launcher/output/sink.h"

namespace ddl::launcher {

/// "rank.07": as wide as the largest rank, so that names sort by rank.
std::string rank_directory_name(int rank, int num_ranks);
/// Those of all ranks.
std::vector<std::string> rank_directory_names(int num_ranks);

/// Appends exact bytes to the files, in one thread for all of them. At most kOpenFiles are open at a time.
class OutputFiles {
 public:
  static constexpr std::size_t kOpenFiles = 256;

  /// Makes the directories (parents too) and files that are missing, and opens each one, so that an obstacle is
  /// reported before ranks start. on_error is posted at most once, with a sentence that names the first file that
  /// could not be written later (disk full). A file that cannot be written gets nothing more, so that its contents
  /// have no gaps.
  /// names: of the ranks' folders in the directory, by rank.
  static Result<std::unique_ptr<OutputFiles>> create(
      const std::string& directory, const std::vector<std::string>& names, Post post,
      std::function<void(const std::string& sentence)> on_error);
  ~OutputFiles();

  /// The file of one stream; lives as long as this object.
  Sink* sink(int rank, OutputStream stream);

  /// Waits until everything has been written (or dropped); false if the deadline passed first. Destroying the object
  /// drops what is left and does not wait.
  bool drain(Deadline deadline) { return thread_.drain(deadline); }

 private:
  class File;
  OutputFiles(std::size_t num_files, WriterThread thread);

  WriterThread thread_;
  std::vector<File> sinks_;  // 2 * rank for stdout, 2 * rank + 1 for stderr
};

}  // namespace ddl::launcher
