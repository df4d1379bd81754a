#include "net/frame.h"

namespace ddl::net {
namespace {

void append_le(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t read_le(const char* data, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(data[i])} << (8 * i);
  return value;
}

}  // namespace

void append_frame(std::string& out, std::uint16_t type, std::string_view payload) {
  DDL_CHECK(payload.size() <= kMaxFramePayload, std::to_string(payload.size()) + " bytes");
  append_le(out, kFrameMagic, 2);
  append_le(out, type, 2);
  append_le(out, payload.size(), 4);
  out.append(payload);
}

void FrameDecoder::append(std::span<const std::byte> bytes) {
  if (consumed_ > 0) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::optional<Frame>> FrameDecoder::next() {
  const std::string_view pending = std::string_view(buffer_).substr(consumed_);
  if (pending.size() < kFrameHeaderSize) return std::nullopt;
  if (read_le(pending.data(), 2) != kFrameMagic) {
    return fail(ErrorCode::kProtocol, "the stream does not carry ddlrun frames at this point");
  }
  const std::uint64_t length = read_le(pending.data() + 4, 4);
  if (length > max_payload_) {
    return fail(ErrorCode::kProtocol, "a frame claims " + std::to_string(length) +
                                          " bytes, more than the allowed " + std::to_string(max_payload_));
  }
  if (pending.size() < kFrameHeaderSize + length) return std::nullopt;
  Frame frame;
  frame.type = static_cast<std::uint16_t>(read_le(pending.data() + 2, 2));
  frame.payload = pending.substr(kFrameHeaderSize, length);
  consumed_ += kFrameHeaderSize + length;
  return std::optional<Frame>(std::move(frame));
}

}  // namespace ddl::net
