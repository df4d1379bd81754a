// A rank as the other ranks name it in error messages and on the wire: its rank, its host and its process id.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::runtime {

/// The number of members that a segment's records are laid out for.
inline constexpr int kMaxMembers = 1024;

// The ranks of a group that can reach each other.

struct Member {
  int rank = 0;
  std::string host;
  pid_t pid = 0;

  /// "rank 2 on node7".
  std::string label() const { return "rank " + std::to_string(rank) + " on " + host; }
  /// "rank 2 on node7 (pid 123)".
  std::string describe() const { return label() + " (pid " + std::to_string(pid) + ")"; }
};

/// In the order of their ranks; a member's position in it is its index everywhere in shared memory.
using Members = std::vector<Member>;

// Text in a field of fixed size, in a message or in shared memory.

/// Plain data. Longer texts are truncated; str() never reads beyond the field, whatever it contains.
template <std::size_t kBytes>
struct TextField {
  std::array<char, kBytes> text{};

  static TextField of(std::string_view value) {
    TextField field;
    std::memcpy(field.text.data(), value.data(), std::min(value.size(), kBytes - 1));
    return field;
  }
  std::string str() const { return std::string(text.data(), ::strnlen(text.data(), kBytes)); }
};

/// A host's name.
using HostField = TextField<64>;

}  // namespace ddl::runtime
