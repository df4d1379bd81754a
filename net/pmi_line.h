// PMI-1, the line protocol by which MPICH's processes and their launcher talk over an inherited descriptor (PMI_FD);
// and the text by which the launcher says which rank is on which node.
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

/// The key of a value that the launcher puts: which rank is on which node.
inline constexpr char kPmiProcessMapping[] = "PMI_process_mapping";

/// That value, "(vector,(0,2,4))": blocks of (first node, number of nodes, ranks on each), in the order of ranks.
/// node_ranks: those of each node. Pure.
std::string process_mapping(const std::vector<std::vector<int>>& node_ranks);
/// The ranks of each node that has some, for a job of num_ranks ranks. If ranks are left after the last block, the
/// first block follows again. Error: an invalid text. Pure.
Result<std::vector<std::vector<int>>> parse_process_mapping(std::string_view text, int num_ranks);

}  // namespace ddl::net
