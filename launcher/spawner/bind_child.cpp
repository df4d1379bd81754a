#include "launcher/spawner/bind_child.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace ddl::launcher {
namespace {

// Debian 12's linux/mempolicy.h has these, C libraries have not.
constexpr int kMpolPreferred = 1;
constexpr int kMpolPreferredMany = 5;
constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::vector<unsigned long> words_of(const std::vector<int>& numbers) {
  std::vector<unsigned long> words(1);
  for (const int number : numbers) {
    const auto bit = static_cast<std::size_t>(number);
    words.resize(std::max(words.size(), bit / kWordBits + 1));
    words[bit / kWordBits] |= 1UL << (bit % kWordBits);
  }
  return words;
}

int set_memory_policy(int mode, const std::vector<int>& nodes) {
  const std::vector<unsigned long> words = words_of(nodes);
  // The kernel looks at one bit less than it is told.
  return ::syscall(SYS_set_mempolicy, mode, words.data(), words.size() * kWordBits + 1) == 0 ? 0 : errno;
}

}  // namespace

int bind_to_cpus(const affinity::CpuSet& cpus) {
  std::vector<unsigned long> wanted = words_of(cpus.cpus());
  const std::size_t bytes = wanted.size() * sizeof(unsigned long);
  if (::sched_setaffinity(0, bytes, reinterpret_cast<const cpu_set_t*>(wanted.data())) != 0) return errno;
  // As wide as the kernel's own mask may be.
  std::vector<unsigned long> got(std::max<std::size_t>(wanted.size(), affinity::kMostCpus / kWordBits));
  if (::sched_getaffinity(0, got.size() * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(got.data())) !=
      0)
    return errno;
  wanted.resize(got.size());
  return got == wanted ? 0 : EINVAL;
}

int prefer_memory_of(const std::vector<int>& nodes) {
  int error = set_memory_policy(kMpolPreferredMany, nodes);
  if (error == EINVAL) error = set_memory_policy(kMpolPreferred, {nodes.front()});
  return error == ENOSYS ? 0 : error;
}

}  // namespace ddl::launcher
