// What a parser of CBOR may be given: bytes from the network are checked before a library parses them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace ddl::net {

/// Which floating-point numbers are accepted: finite ones of at most kMaxCborNumber, or all.
enum class CborNumbers : std::uint8_t { kSeconds, kAny };

inline constexpr int kMaxCborDepth = 16;
/// Numbers with a fraction are seconds: everything up to this also fits an int.
inline constexpr double kMaxCborNumber = 1e9;

/// Success if bytes are one whole item of plain CBOR (RFC 8949): of definite length, without tags, nested at most
/// kMaxCborDepth deep, with such numbers. Error kProtocol otherwise. Needs no memory and does not recurse, whatever the
/// bytes are. nlohmann-json, which may follow, recurses into nested items, and also into each part of a text or of
/// bytes of indefinite length.
Status check_cbor_shape(std::string_view bytes, CborNumbers numbers);

}  // namespace ddl::net
