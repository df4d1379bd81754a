#include "launcher/agent/stdin_feed.h"

#include <unistd.h>

#include <algorithm>

namespace ddl::launcher {

void StdinFeed::add(UniqueFd pipe) {
  (void)set_nonblocking(pipe.get(), true);
  const auto reader = readers_.insert(readers_.end(), Reader{std::move(pipe), {}, {}});
  reader->watch = loop_.watch(reader->pipe.get(), nullptr, [this, reader] {
    write_some(reader);
    settle();
  });
}

void StdinFeed::send(std::string_view bytes) {
  sent_ += static_cast<std::int64_t>(bytes.size());
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    const auto current = reader++;
    current->pending += bytes;
    write_some(current);
  }
  settle();
}

void StdinFeed::end() {
  ended_ = true;
  for (auto reader = readers_.begin(); reader != readers_.end();) write_some(reader++);
  settle();
}

// May erase the reader: it has closed its end, or has everything.
void StdinFeed::write_some(std::list<Reader>::iterator reader) {
  while (!reader->pending.empty()) {
    const ssize_t written = retry_eintr(
        [&] { return ::write(reader->pipe.get(), reader->pending.data(), reader->pending.size()); });
    if (written < 0 && errno == EAGAIN) return reader->watch.want_write(true);
    if (written < 0) {
      reader->watch.reset();
      readers_.erase(reader);
      return;
    }
    reader->pending.erase(0, static_cast<std::size_t>(written));
  }
  reader->watch.want_write(false);
  if (ended_) {
    reader->watch.reset();
    readers_.erase(reader);
  }
}

void StdinFeed::settle() {
  std::size_t slowest = 0;
  for (const Reader& reader : readers_) slowest = std::max(slowest, reader.pending.size());
  const std::int64_t taken = sent_ - static_cast<std::int64_t>(slowest);
  if (taken > reported_) {
    handlers_.on_taken(taken - reported_);
    reported_ = taken;
  }
  if (readers_.empty() && !closed_) {
    closed_ = true;
    handlers_.on_closed();
  }
}

}  // namespace ddl::launcher
