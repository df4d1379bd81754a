// A set of CPUs by the operating system's numbers, of any width.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl {

/// No CPU has this number or a larger one; Linux is built for at most 8192 CPUs.
inline constexpr int kMaxCpuNumbers = 65536;

/// A pure value. Numbers are the operating system's, never a position among the CPUs that are allowed.
class CpuSet {
 public:
  CpuSet() = default;
  static CpuSet of(const std::vector<int>& cpus);
  static CpuSet range(int first, int last);  ///< both inclusive
  /// The CPUs of a bit mask, as words() returns it; zeros may follow.
  static CpuSet of_words(std::span<const std::uint64_t> words);
  /// CPUs that the calling thread may run on (taskset, cgroup cpuset). CPU 0 where the kernel does not say.
  static CpuSet allowed();
  /// "0-3,8,10-11", as Linux and `lscpu` write it; "" is the empty set. Error kInvalidArgument names the part.
  static Result<CpuSet> parse_list(std::string_view text);

  /// Lets the calling thread run on these CPUs alone. Returns 0 or an errno: EINVAL also where the kernel leaves some
  /// of them out without an error, as a cgroup can make it do. Allocates nothing, so a forked child may call it.
  int bind_this_thread() const;

  bool is_empty() const { return words_.empty(); }
  int count() const;
  bool contains(int cpu) const;
  /// The lowest; -1 if empty.
  int first() const;
  std::vector<int> cpus() const;  ///< ascending
  /// The set as a bit mask: CPU n is bit n % 64 of word n / 64. The last word is not 0.
  std::span<const std::uint64_t> words() const { return words_; }

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

}  // namespace ddl
