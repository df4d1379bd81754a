// Whether bytes are CBOR that may be handed to a parser that recurses.
#pragma once

#include <string_view>

#include "base/error.h"

namespace ddl::launcher::message {

/// Success if bytes are one whole item of plain CBOR (RFC 8949): of definite length, without tags, nested at most
/// kMaxCborDepth deep, its floating-point numbers finite and at most kMaxCborNumber. Error kProtocol otherwise.
/// Needs no memory and does not recurse, whatever the bytes are.
Status check_cbor_shape(std::string_view bytes);

inline constexpr int kMaxCborDepth = 16;
/// Numbers with a fraction are seconds: everything up to this also fits an int.
inline constexpr double kMaxCborNumber = 1e9;

}  // namespace ddl::launcher::message
