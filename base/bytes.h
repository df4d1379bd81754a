// Bytes: random ones, and as hexadecimal digits.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl {

/// Fills at most 256 bytes, fit for keys (getrandom(2)). Error: the system has no random numbers.
Status fill_random(std::span<std::byte> bytes);

/// Two lower-case digits a byte. Leaves no copy elsewhere: it may be a secret.
std::string to_hex(std::span<const std::byte> bytes);
/// Back. False: the text is not exactly two lower-case digits for each of the bytes, which then hold anything.
bool from_hex(std::string_view text, std::span<std::byte> bytes);

/// "5a8c1b3e-0d4f-...": groups of 8, 4, 4, 4 and 12 digits.
std::string uuid_text(std::span<const std::byte, 16> bytes);

/// At most 256 bytes of fill_random(), as to_hex() writes them: for names that are unique and cannot be guessed.
Result<std::string> random_hex(std::size_t count);

}  // namespace ddl
