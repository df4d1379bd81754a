// A way past ddlrun's streams by which ranks and the test tell each other something.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/fd.h"
#include "e2e/harness/scratch.h"

namespace ddl::e2e {

/// A FIFO, for one direction: ranks open its path to write what the test reads, or the other way round. The test holds it
/// open for both, so opening it never waits and it has no end. Lines up to PIPE_BUF stay whole.
class Fifo {
 public:
  Fifo(const Scratch& scratch, const std::string& name);

  const std::string& path() const { return path_; }
  const std::string& bytes() const { return bytes_; }
  /// Reads until the text has come so many times. False if kPatience is over first.
  bool wait_for(std::string_view text, int times = 1);
  /// Reads what is there, without waiting.
  const std::string& read_now();
  /// For as many ranks as there are lines: the shell's read takes one line and no more.
  void write(std::string_view lines);

 private:
  bool read_some(Deadline deadline);

  std::string path_;
  UniqueFd fd_;
  std::string bytes_;
};

/// How often a word is in a text.
int occurrences(std::string_view text, std::string_view word);

}  // namespace ddl::e2e
