#include "launcher/fleet/gather/join.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <span>

#include "base/deadline.h"
#include "launcher/message/codec.h"
#include "net/tcp.h"

namespace ddl::launcher {

namespace {

constexpr std::size_t kMostJoinBytes = std::size_t{64} << 10;
constexpr std::chrono::seconds kEachAddress{3};

Deadline sooner(Deadline a, Deadline b) { return a.when() < b.when() ? a : b; }

Result<UniqueFd> connect_within(const net::SocketAddress& address, Deadline deadline) {
  auto socket = net::begin_connect(address);
  if (!socket) return fail(std::move(socket.error()));
  pollfd waited{socket->get(), POLLOUT, 0};
  const int ready = retry_eintr([&] { return ::poll(&waited, 1, deadline.poll_milliseconds()); });
  if (ready <= 0) return fail(ErrorCode::kTimeout, address.to_text() + ": no answer");
  if (auto status = net::connect_result(socket->get()); !status)
    return fail(Error(status.error()).during(address.to_text()));
  return std::move(*socket);
}

}  // namespace

Result<message::Join> read_join(int fd) {
  net::FrameDecoder decoder(kMostJoinBytes);
  std::array<std::byte, 4096> buffer;
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (got < 0) return fail_errno("read");
    if (got == 0) return fail(ErrorCode::kClosed, "ddlrun has gone before it said whom to join");
    decoder.append(std::span(buffer).first(static_cast<std::size_t>(got)));
    const auto frame = decoder.next();
    if (!frame) return fail(frame.error());
    if (!*frame) continue;
    auto message = message::decode(**frame);
    if (!message) return fail(message.error());
    if (auto* join = std::get_if<message::Join>(&*message)) return std::move(*join);
    return fail(ErrorCode::kProtocol, "something else than whom to join came first");
  }
}

Result<UniqueFd> connect_to_gatherer(const message::Join& join, std::chrono::milliseconds patience) {
  const Deadline deadline = Deadline::after(patience);
  std::string said = "no address was given";
  for (const std::string& text : join.addresses) {
    const bool is_v6 = text.find(':') != std::string::npos;
    const auto address =
        net::SocketAddress::parse((is_v6 ? "[" + text + "]:" : text + ":") + std::to_string(join.port));
    if (!address) continue;
    auto socket = connect_within(*address, sooner(deadline, Deadline::after(kEachAddress)));
    if (socket) return socket;
    said = socket.error().message();
  }
  return fail(ErrorCode::kUnavailable, "the first node of the job cannot be reached: " + said);
}

}  // namespace ddl::launcher
