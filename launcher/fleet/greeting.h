// An agent's first line, by which it is found behind whatever a login shell has printed before it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::launcher {

/// 128 random bits in hexadecimal digits: tells an answer to this question from anything else. Not a secret.
Result<std::string> make_nonce();

/// "ddlrun-agent 0.1.0 <nonce>\n".
std::string greeting(std::string_view version, std::string_view nonce);

/// Looks for a greeting in a stream of bytes. Holds at most kMaxNoise bytes.
class GreetingScanner {
 public:
  /// A shell's start-up files may say so much before the agent does.
  static constexpr std::size_t kMaxNoise = std::size_t{64} << 10;

  explicit GreetingScanner(std::string nonce) : nonce_(std::move(nonce)) {}

  enum class State { kLooking, kFound, kTooMuchNoise };
  /// Takes bytes as they arrive. After kFound or kTooMuchNoise it must not be called again.
  State take(std::string_view bytes);

  const std::string& version() const { return version_; }  ///< once found: the agent's
  const std::string& rest() const { return rest_; }        ///< once found: what came behind the greeting
  const std::string& noise() const { return seen_; }       ///< what came before it, or all so far

 private:
  std::string nonce_;
  std::string seen_;
  std::string version_;
  std::string rest_;
};

}  // namespace ddl::launcher
