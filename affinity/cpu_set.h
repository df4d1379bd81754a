// A set of CPUs by the operating system's numbers, of any width.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::affinity {

/// The largest number that is taken from text; Linux is built for 8192 CPUs at most.
inline constexpr int kMostCpus = 65536;

/// A pure value. Numbers are the operating system's, never a position among the CPUs that are allowed.
class CpuSet {
 public:
  CpuSet() = default;
  static CpuSet of(const std::vector<int>& cpus);
  static CpuSet range(int first, int last);  ///< both inclusive
  /// "0-3,8,10-11", as Linux and `lscpu` write it; "" is the empty set. Error kInvalidArgument names the part.
  static Result<CpuSet> parse_list(std::string_view text);

  bool is_empty() const { return words_.empty(); }
  int count() const;
  bool contains(int cpu) const;
  /// The lowest; -1 if empty.
  int first() const;
  std::vector<int> cpus() const;  ///< ascending

  void add(int cpu);
  void remove(int cpu);

  bool intersects(const CpuSet& other) const;
  bool is_subset_of(const CpuSet& other) const;
  CpuSet operator&(const CpuSet& other) const;
  CpuSet operator|(const CpuSet& other) const;
  CpuSet operator-(const CpuSet& other) const;
  CpuSet& operator|=(const CpuSet& other) { return *this = *this | other; }
  bool operator==(const CpuSet&) const = default;

  /// "0-3,8".
  std::string list() const;
  /// "0xfe000000000000": hexadecimal, lower case, no leading zeros; "0x0" if empty.
  std::string mask() const;

 private:
  void trim();

  std::vector<std::uint64_t> words_;  ///< 64 CPUs each, the last one not 0
};

}  // namespace ddl::affinity
