#include "net/cbor_shape.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace ddl::net {
namespace {

// RFC 8949, section 3: the upper three bits of an item's first byte.
enum Major { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kOther };

tl::unexpected<Error> refuse(const char* what) { return fail(ErrorCode::kProtocol, what); }

bool is_acceptable(double number) { return std::isfinite(number) && std::fabs(number) <= kMaxCborNumber; }

}  // namespace

Status check_cbor_shape(std::string_view bytes, CborNumbers numbers) {
  std::array<std::uint64_t, kMaxCborDepth + 1> missing{1};  // items that are still to come, at every level
  std::size_t level = 0;
  for (;;) {
    while (missing[level] == 0) {
      if (level == 0) return bytes.empty() ? Status() : refuse("there is more behind its end");
      --level;
    }
    --missing[level];

    if (bytes.empty()) return refuse("it is cut short");
    const auto first = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    const unsigned info = first & 0x1f;
    if (info > 27) return refuse("an item of indefinite length");
    // The argument: in the first byte itself, or in the 1, 2, 4 or 8 bytes behind it.
    std::uint64_t argument = info;
    if (info >= 24) {
      const std::size_t width = std::size_t{1} << (info - 24);
      if (bytes.size() < width) return refuse("it is cut short");
      argument = 0;
      for (const char byte : bytes.substr(0, width))
        argument = argument << 8 | static_cast<unsigned char>(byte);
      bytes.remove_prefix(width);
    }

    switch (static_cast<Major>(first >> 5)) {
      case kUnsigned:
      case kNegative: break;
      case kBytes:
      case kText:
        if (argument > bytes.size()) return refuse("it is cut short");
        bytes.remove_prefix(argument);
        break;
      case kArray:
      case kMap:
        if (argument > bytes.size()) return refuse("it is cut short");  // every item has a byte at least
        if (level == kMaxCborDepth) return refuse("it is nested too deeply");
        missing[++level] = (first >> 5) == kMap ? 2 * argument : argument;
        break;
      case kTag: return refuse("it has a tag");
      case kOther:
        if (numbers == CborNumbers::kAny) break;
        if (info == 25 && (argument & 0x7c00) == 0x7c00)
          return refuse("a number that is not finite");  // half: fits otherwise
        if ((info == 26 && !is_acceptable(std::bit_cast<float>(static_cast<std::uint32_t>(argument)))) ||
            (info == 27 && !is_acceptable(std::bit_cast<double>(argument)))) {
          return refuse("a number that is not finite, or too large");
        }
        break;
    }
  }
}

}  // namespace ddl::net
