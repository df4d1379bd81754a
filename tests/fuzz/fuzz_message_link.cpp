// What the sender of messages writes to its connection, with arbitrary bytes: no frame may contradict itself, and data
// must stay within the receive that was granted.
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "runtime/src/message/message_link.h"

using namespace ddl;
using namespace ddl::runtime;

namespace {

/// Message 1 has been granted.
class Receiver final : public FrameReceiver {
 public:
  Status on_frame(MessageLink&, const MessageFrame& frame, std::span<const std::byte> payload) override {
    if (!frame.is_of_sender() && frame.kind != MessageFrame::Kind::kFarewell) std::abort();
    if (payload.size() != frame.length || payload.size() > MessageFrame::kMaxEager) std::abort();
    return {};
  }
  Result<std::span<std::byte>> place_of(MessageLink&, const MessageFrame& frame) override {
    if (frame.number != 1 || frame.bytes != granted_.size())
      return fail(ErrorCode::kProtocol, "data arrived that nobody expects");
    if (frame.offset > granted_.size() || frame.length > granted_.size() - frame.offset) std::abort();
    return std::span(granted_).subspan(frame.offset, frame.length);
  }
  void on_data(MessageLink&, const MessageFrame&) override {}
  void on_sent(const MessagePtr&) override { std::abort(); }

 private:
  std::vector<std::byte> granted_ = std::vector<std::byte>(1000);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto pair = make_socket_pair(SOCK_STREAM);
  if (!pair || !set_nonblocking(pair->first.get(), true)) std::abort();
  size = std::min<std::size_t>(size, 64 << 10);  // what a socket takes at once
  if (size > 0 && !write_all(pair->second.get(), data, size)) std::abort();
  pair->second.reset();
  Receiver receiver;
  MessageLink link(1, false);
  link.connect(std::move(pair->first));
  while (link.receive(receiver)) {
  }
  return 0;
}
