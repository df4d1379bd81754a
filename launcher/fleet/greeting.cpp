#include "launcher/fleet/greeting.h"

#include <sys/random.h>

#include <algorithm>
#include <array>

#include "base/fd.h"

namespace ddl::launcher {
namespace {

constexpr std::string_view kName = "ddlrun-agent ";
constexpr std::size_t kMaxVersion = 64;

}  // namespace

Result<std::string> make_nonce() {
  std::array<unsigned char, 16> bytes{};
  if (retry_eintr([&] { return ::getrandom(bytes.data(), bytes.size(), 0); }) !=
      static_cast<ssize_t>(bytes.size())) {
    return fail_errno("getrandom");
  }
  std::string nonce;
  for (const unsigned char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    nonce += kDigits[byte >> 4];
    nonce += kDigits[byte & 15];
  }
  return nonce;
}

std::string greeting(std::string_view version, std::string_view nonce) {
  return std::string(kName) + std::string(version) + " " + std::string(nonce) + "\n";
}

GreetingScanner::State GreetingScanner::take(std::string_view bytes) {
  // Only what is new can complete the greeting, but it may have begun before.
  const std::size_t longest = kName.size() + kMaxVersion + 2 + nonce_.size();
  const std::size_t from = seen_.size() - std::min(seen_.size(), longest);
  seen_ += bytes;
  const std::string ending = " " + nonce_ + "\n";
  for (std::size_t end = seen_.find(ending, from); end != std::string::npos;
       end = seen_.find(ending, end + 1)) {
    const std::size_t begin = seen_.rfind(kName, end);
    if (begin == std::string::npos || end - begin > kName.size() + kMaxVersion) continue;
    version_ = seen_.substr(begin + kName.size(), end - begin - kName.size());
    rest_ = seen_.substr(end + ending.size());
    seen_.resize(begin);
    return State::kFound;
  }
  return seen_.size() > kMaxNoise ? State::kTooMuchNoise : State::kLooking;
}

}  // namespace ddl::launcher
