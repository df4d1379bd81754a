// The frame decoder with arbitrary bytes. The first byte selects how the rest is split into reads. Every split must
// give the same frames and the same end, and the frames, encoded again, must be equal to the input.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "net/frame.h"

namespace {

using ddl::net::FrameDecoder;

// Small, so that lengths just below and above it are likely.
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
  // The position at which an invalid stream stops in a read depends on the split; only the ends of valid ones are
  // compared.
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
