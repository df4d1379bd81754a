#include "runtime/src/message/message_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ddl::runtime {
namespace {

constexpr std::size_t kInputBytes = std::size_t{128} << 10;
/// One receive() takes no more; the socket stays readable.
constexpr std::size_t kTurnBytes = std::size_t{4} << 20;

std::span<const std::byte> frame_bytes(const MessageFrame& frame) {
  return std::as_bytes(std::span(&frame, 1));
}

}  // namespace

void MessageLink::post(const MessageFrame& frame, std::span<const std::byte> payload) {
  const auto head = frame_bytes(frame);
  output_.insert(output_.end(), head.begin(), head.end());
  output_.insert(output_.end(), payload.begin(), payload.end());
}

void MessageLink::post_data(std::uint64_t number, MessagePtr message) {
  data_.push_back({number, std::move(message)});
}

Status MessageLink::send(FrameReceiver& receiver) {
  if (!socket_) return {};
  while (has_output()) {
    std::array<iovec, 2> parts{};
    int count = 0;
    const auto add = [&](std::span<const std::byte> bytes) {
      if (!bytes.empty()) parts[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    };
    // A data frame that has been begun comes first, then all frames, then the next part of the data.
    const bool sends_data = amid_ || sent_ == output_.size();
    if (sends_data && !amid_) {
      const Data& next = data_.front();
      data_frame_ = {};
      data_frame_.kind = MessageFrame::Kind::kData;
      data_frame_.number = next.number;
      data_frame_.bytes = next.message->bytes;
      data_frame_.offset = next.offset;
      data_frame_.length =
          static_cast<std::uint32_t>(std::min(next.message->bytes - next.offset, MessageFrame::kMaxData));
      data_sent_ = 0;
      amid_ = true;
    }
    if (sends_data) {
      const std::size_t head = std::min(data_sent_, sizeof data_frame_);
      add(frame_bytes(data_frame_).subspan(head));
      const std::size_t gone = data_sent_ - head;
      add({data_.front().message->buffer + data_frame_.offset + gone, data_frame_.length - gone});
    } else {
      add(std::span(output_).subspan(sent_));
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = static_cast<std::size_t>(count);
    const ssize_t sent = retry_eintr([&] { return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL); });
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      return fail_errno("send");
    }
    if (!sends_data) {
      sent_ += static_cast<std::size_t>(sent);
      if (sent_ == output_.size()) {
        output_.clear();
        sent_ = 0;
      }
      continue;
    }
    data_sent_ += static_cast<std::size_t>(sent);
    if (data_sent_ < sizeof data_frame_ + data_frame_.length) continue;
    amid_ = false;
    Data& done = data_.front();
    done.offset += data_frame_.length;
    if (done.offset < done.message->bytes) continue;
    receiver.on_sent(done.message);
    data_.pop_front();
  }
  return {};
}

Status MessageLink::receive(FrameReceiver& receiver) {
  std::size_t turn = 0;
  while (turn < kTurnBytes && socket_) {
    const bool is_direct = !to_.empty();
    if (input_.empty()) input_.resize(kInputBytes);
    if (!is_direct && begin_ > 0) {
      std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    // What follows the data goes into the input by the same call.
    std::array<iovec, 2> parts{};
    int count = 0;
    if (is_direct) parts[count++] = {to_.data(), to_.size()};
    if (is_direct) begin_ = end_ = 0;
    parts[count++] = {input_.data() + end_, input_.size() - end_};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = static_cast<std::size_t>(count);
    const ssize_t got = retry_eintr([&] { return ::recvmsg(socket_.get(), &message, 0); });
    if (got < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      return fail_errno("receive");
    }
    if (got == 0) return fail(ErrorCode::kClosed, "the connection has ended");
    const std::size_t room = to_.size() + input_.size() - end_;
    auto left = static_cast<std::size_t>(got);
    const bool is_all = left < room;
    turn += left;
    if (is_direct) {
      const std::size_t placed = std::min(left, to_.size());
      to_ = to_.subspan(placed);
      left -= placed;
      if (to_.empty()) receiver.on_data(*this, arriving_);
    }
    end_ += left;
    DDL_TRY(take_input(receiver));
    if (is_all) return {};
  }
  return {};
}

Status MessageLink::take_input(FrameReceiver& receiver) {
  while (to_.empty() && end_ - begin_ >= sizeof(MessageFrame)) {
    const std::span<const std::byte> input(input_.data() + begin_, end_ - begin_);
    const auto frame = MessageFrame::parse(input.first(sizeof(MessageFrame)));
    if (!frame || (frame->kind != MessageFrame::Kind::kFarewell && frame->is_of_sender() == is_own_))
      return fail(ErrorCode::kProtocol, "an invalid frame arrived on the connection for messages");
    if (frame->kind == MessageFrame::Kind::kData) {
      DDL_ASSIGN(to, receiver.place_of(*this, *frame));
      arriving_ = *frame;
      const auto rest = input.subspan(sizeof(MessageFrame));
      const std::size_t here = std::min(rest.size(), to.size());
      std::memcpy(to.data(), rest.data(), here);
      begin_ += sizeof(MessageFrame) + here;
      to_ = to.subspan(here);
      if (to_.empty()) receiver.on_data(*this, arriving_);
      continue;
    }
    const std::size_t whole = sizeof(MessageFrame) + frame->length;
    if (input.size() < whole) return {};
    begin_ += whole;
    DDL_TRY(receiver.on_frame(*this, *frame, input.subspan(sizeof(MessageFrame), frame->length)));
  }
  return {};
}

}  // namespace ddl::runtime
