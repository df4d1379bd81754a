// A channel between ranks and the test that does not use ddlrun's streams.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "e2e/harness/scratch.h"

namespace ddl::e2e {

/// A FIFO, used in one direction: ranks open its path and write, and the test reads, or the reverse. The test has it
/// open for both, so that open never waits and there is no end of file. Lines up to PIPE_BUF are not split.
class Fifo {
 public:
  Fifo(const Scratch& scratch, const std::string& name);

  const std::string& path() const { return path_; }
  const std::string& bytes() const { return bytes_; }
  /// Reads until the text has come this number of times. False if kTestTimeout is over first.
  bool wait_for(std::string_view text, int times = 1);
  /// Reads the available bytes, without waiting.
  const std::string& read_now();
  /// Releases one rank for each line: the shell's read takes only one line.
  void write(std::string_view lines);

 private:
  bool read_some(Deadline deadline);

  std::string path_;
  UniqueFd fd_;
  std::string bytes_;
};

/// The number of occurrences of a word in a text.
int occurrences(std::string_view text, std::string_view word);

}  // namespace ddl::e2e
