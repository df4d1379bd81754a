// PMI-1, the line protocol by which MPICH's processes and their launcher talk over an inherited descriptor (PMI_FD).
//
// A line is "cmd=put kvsname=kvs_1 key=a value=b\n": words without blanks, each a name and a value. MPICH's own
// parser takes lines of up to 1023 bytes. Source: MPICH, "PMI: A Scalable Parallel Process-Management Interface", and
// its simple_pmi client.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ddl::net {

struct PmiLine {
  std::string command;  ///< of cmd=, or of mcmd=, which begins several lines
  /// The others, in their order, which matters to Slurm.
  std::vector<std::pair<std::string, std::string>> words;

  /// The value of a word; "" if it is not there.
  std::string_view operator[](std::string_view name) const;
  /// With its newline. No name or value may hold a blank or a newline.
  std::string text() const;

  /// A line without its newline. Error: it does not begin with a command, or a word has no name. Pure.
  static Result<PmiLine> parse(std::string_view line);
  bool operator==(const PmiLine&) const = default;
};

/// The limits of sizes that a server announces to its clients; both sides keep to them.
inline constexpr std::size_t kMaxPmiName = 256;  ///< of a key-value space
inline constexpr std::size_t kMaxPmiKey = 64;
inline constexpr std::size_t kMaxPmiValue = 1024;

/// Takes bytes as they arrive and gives lines back, without their newlines.
class PmiLineReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole line; nullopt when more bytes are needed. Error: a line of more than 64 KiB.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
};

}  // namespace ddl::net
