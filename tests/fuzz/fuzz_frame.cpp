// The frame decoder on arbitrary bytes. The first byte chooses how the rest is cut into reads; however it is cut,
// the same frames and the same end must come out, and the frames, encoded again, must be the bytes they came from.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "net/frame.h"

namespace {

using ddl::net::FrameDecoder;

// Small, so that claims just below and above it are easy to hit.
constexpr std::size_t kMaxPayload = 512;

struct Decoded {
  std::string encoded_again;
  bool broken = false;
  bool at_boundary = false;
  bool operator==(const Decoded&) const = default;
};

Decoded decode(std::span<const std::byte> stream, std::size_t read_size) {
  Decoded decoded;
  FrameDecoder decoder(kMaxPayload);
  for (std::size_t at = 0; at < stream.size() && !decoded.broken; at += read_size) {
    decoder.append(stream.subspan(at, std::min(read_size, stream.size() - at)));
    for (;;) {
      auto next = decoder.next();
      if (!next) {
        decoded.broken = true;
        break;
      }
      if (!*next) break;
      if ((*next)->payload.size() > kMaxPayload) std::abort();
      ddl::net::append_frame(decoded.encoded_again, (*next)->type, (*next)->payload);
    }
  }
  // Where a broken stream stops within a read depends on the cut; only whole ones have an end to compare.
  decoded.at_boundary = !decoded.broken && decoder.at_boundary();
  return decoded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t read_size = std::size_t{1} + data[0];
  const std::span<const std::byte> stream = std::as_bytes(std::span(data + 1, size - 1));
  const Decoded whole = decode(stream, stream.size() + 1);
  if (decode(stream, read_size) != whole) std::abort();
  const std::string_view text(reinterpret_cast<const char*>(stream.data()), stream.size());
  if (!text.starts_with(whole.encoded_again)) std::abort();
  if (whole.at_boundary && text.size() != whole.encoded_again.size()) std::abort();
  return 0;
}
