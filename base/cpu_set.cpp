#include "base/cpu_set.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>

#include "base/text.h"

namespace ddl {
namespace {

constexpr int kBits = 64;

std::size_t word_of(int cpu) { return static_cast<std::size_t>(cpu) / kBits; }
std::uint64_t bit_of(int cpu) { return std::uint64_t{1} << (static_cast<unsigned>(cpu) % kBits); }

/// As wide as any kernel's mask: glibc's cpu_set_t ends at 1024 CPUs.
using WidestMask = std::array<std::uint64_t, kMaxCpuNumbers / kBits>;

/// 0 or an errno.
int read_affinity(WidestMask& mask) {
  mask.fill(0);
  return ::sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) == 0 ? 0 : errno;
}

std::string hexadecimal(std::uint64_t word) {
  std::array<char, 16> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), word, 16).ptr};
}

}  // namespace

CpuSet CpuSet::of(const std::vector<int>& cpus) {
  CpuSet set;
  for (const int cpu : cpus) set.add(cpu);
  return set;
}

CpuSet CpuSet::range(int first, int last) {
  CpuSet set;
  for (int cpu = first; cpu <= last; ++cpu) set.add(cpu);
  return set;
}

CpuSet CpuSet::of_words(std::span<const std::uint64_t> words) {
  CpuSet set;
  set.words_.assign(words.begin(), words.end());
  set.trim();
  return set;
}

CpuSet CpuSet::allowed() {
  WidestMask mask;
  return read_affinity(mask) == 0 ? of_words(mask) : of({0});
}

int CpuSet::bind_this_thread() const {
  if (::sched_setaffinity(0, words_.size() * sizeof words_[0],
                          reinterpret_cast<const cpu_set_t*>(words_.data())) != 0)
    return errno;
  WidestMask got;
  if (const int error = read_affinity(got)) return error;
  const auto rest = got.begin() + static_cast<std::ptrdiff_t>(words_.size());
  const bool is_as_wanted = std::equal(words_.begin(), words_.end(), got.begin()) &&
                            std::all_of(rest, got.end(), [](std::uint64_t word) { return word == 0; });
  return is_as_wanted ? 0 : EINVAL;
}

Result<CpuSet> CpuSet::parse_list(std::string_view text) {
  CpuSet set;
  if (ddl::trim(text).empty()) return set;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_integer(ddl::trim(ends.front())), last = parse_integer(ddl::trim(ends.back()));
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= kMaxCpuNumbers) {
      return fail(ErrorCode::kInvalidArgument,
                  "\"" + std::string(ddl::trim(part)) +
                      "\" is neither a CPU number nor a range of them such as 8-15");
    }
    set |= range(static_cast<int>(*first), static_cast<int>(*last));
  }
  return set;
}

int CpuSet::count() const {
  int count = 0;
  for (const std::uint64_t word : words_) count += std::popcount(word);
  return count;
}

bool CpuSet::contains(int cpu) const {
  return cpu >= 0 && word_of(cpu) < words_.size() && (words_[word_of(cpu)] & bit_of(cpu)) != 0;
}

int CpuSet::first() const {
  for (std::size_t word = 0; word < words_.size(); ++word) {
    if (words_[word] != 0) return static_cast<int>(word) * kBits + std::countr_zero(words_[word]);
  }
  return -1;
}

std::vector<int> CpuSet::cpus() const {
  std::vector<int> cpus;
  for (std::size_t word = 0; word < words_.size(); ++word) {
    for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1)
      cpus.push_back(static_cast<int>(word) * kBits + std::countr_zero(rest));
  }
  return cpus;
}

void CpuSet::add(int cpu) {
  DDL_CHECK(cpu >= 0 && cpu < kMaxCpuNumbers, std::to_string(cpu));
  if (word_of(cpu) >= words_.size()) words_.resize(word_of(cpu) + 1);
  words_[word_of(cpu)] |= bit_of(cpu);
}

void CpuSet::remove(int cpu) {
  if (!contains(cpu)) return;
  words_[word_of(cpu)] &= ~bit_of(cpu);
  trim();
}

bool CpuSet::intersects(const CpuSet& other) const { return !(*this & other).is_empty(); }

bool CpuSet::is_subset_of(const CpuSet& other) const { return (*this - other).is_empty(); }

CpuSet CpuSet::operator&(const CpuSet& other) const {
  CpuSet both;
  both.words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < both.words_.size(); ++i) both.words_[i] = words_[i] & other.words_[i];
  both.trim();
  return both;
}

CpuSet CpuSet::operator|(const CpuSet& other) const {
  CpuSet any = words_.size() >= other.words_.size() ? *this : other;
  const CpuSet& shorter = words_.size() >= other.words_.size() ? other : *this;
  for (std::size_t i = 0; i < shorter.words_.size(); ++i) any.words_[i] |= shorter.words_[i];
  return any;
}

CpuSet CpuSet::operator-(const CpuSet& other) const {
  CpuSet rest = *this;
  for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
    rest.words_[i] &= ~other.words_[i];
  rest.trim();
  return rest;
}

std::string CpuSet::list() const {
  std::string text;
  const std::vector<int> all = cpus();
  for (std::size_t i = 0; i < all.size();) {
    std::size_t last = i;
    while (last + 1 < all.size() && all[last + 1] == all[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(all[i]);
    if (last != i) text += "-" + std::to_string(all[last]);
    i = last + 1;
  }
  return text;
}

std::string CpuSet::mask() const {
  std::string digits;
  for (auto word = words_.rbegin(); word != words_.rend(); ++word) {
    const std::string own = hexadecimal(*word);
    if (!digits.empty()) digits.append(kBits / 4 - own.size(), '0');
    digits += own;
  }
  return "0x" + (digits.empty() ? "0" : digits);
}

void CpuSet::trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
}

}  // namespace ddl
