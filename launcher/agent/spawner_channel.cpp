#include "launcher/agent/spawner_channel.h"

#include <csignal>

#include "base/fd.h"
#include "launcher/message/codec.h"
#include "launcher/process/child_end.h"

namespace ddl::launcher {

void SpawnerChannel::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  watch_ = loop_.watch(process_.channel.get(), [this] { on_readable(); });
}

void SpawnerChannel::send(const message::Any& message, std::span<const int> fds) {
  if (lost_) return;
  const net::Frame frame = message::encode(message);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  // A failed write means that it died: the reading side notices, after what it said last.
  (void)send_with_fds(process_.channel.get(), std::as_bytes(std::span(bytes)), fds);
}

void SpawnerChannel::on_readable() {
  std::array<std::byte, 16384> buffer;
  const auto received = receive_with_fds(process_.channel.get(), buffer);
  if (!received || received->size == 0) return lose();
  decoder_.append(std::span(buffer).first(received->size));
  while (!lost_) {
    auto frame = decoder_.next();
    if (!frame) return lose();
    if (!*frame) return;
    if (const auto message = message::decode(**frame)) handlers_.on_message(*message);
  }
}

void SpawnerChannel::lose() {
  lost_ = true;
  watch_.reset();
  handlers_.on_lost();
}

void SpawnerChannel::kill() {
  if (!lost_) ::kill(process_.pid, SIGKILL);  // not reaped yet, so it is still that process
}

std::string SpawnerChannel::how_it_ended() { return describe_child_end(process_.pid); }

}  // namespace ddl::launcher
