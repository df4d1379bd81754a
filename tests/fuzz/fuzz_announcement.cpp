// The frames in which ranks announce named tensors, with arbitrary bytes. The first byte selects the number of ranks.
// An accepted frame must be unchanged after it is written and read again; all other input must give an error.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "runtime/src/named/frame.h"

using ddl::runtime::Frame;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const int ranks = 1 + data[0] % 4;
  const auto frame = Frame::parse(std::span(data + 1, size - 1), ranks);
  if (!frame) {
    if (frame.error().code() != ddl::ErrorCode::kProtocol) std::abort();
    return 0;
  }
  const auto bytes = frame->to_bytes();
  const auto again = Frame::parse(bytes, ranks);
  // Bytes, because a scale may be one that is not equal to itself.
  if (!again || again->to_bytes() != bytes) std::abort();
  return 0;
}
