#include "launcher/node/io_forwarding.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace ddl::launcher {
namespace {

constexpr std::size_t kReadSize = 65536;
constexpr auto kIdleAfter = std::chrono::milliseconds(100);

std::int64_t unix_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RankOutput::RankOutput(EventLoop& loop, Settings settings, UniqueFd pipe, Emit emit)
    : loop_(loop),
      settings_(settings),
      pipe_(std::move(pipe)),
      emit_(std::move(emit)),
      splitter_(settings.rank, settings.stream,
                settings.split_lines ? LineSplitter::Mode::kLines : LineSplitter::Mode::kRaw,
                output_line_limit(settings.window)),
      credit_(settings.window) {
  (void)set_nonblocking(pipe_.get(), true);
  watch_ = loop_.watch(pipe_.get(), [this] { read_once(credit_.may_read()); });
}

void RankOutput::refund(std::size_t bytes) {
  if (!credit_.refund(bytes) || is_closed()) return;
  watch_.want_read(true);
}

void RankOutput::drain() {
  // Not until it is empty: a process that the rank left behind may write to it as fast as this reads.
  int held = 0;
  if (is_closed() || ::ioctl(pipe_.get(), FIONREAD, &held) != 0) return;
  std::size_t left = held;
  while (left > 0 && !is_closed()) {
    const std::size_t got = read_once(std::min(left, kReadSize));
    if (got == 0) return;
    left -= got;
  }
  if (!is_closed()) read_once(std::max<std::size_t>(credit_.may_read(), 1));  // finds the end, if it is there
}

// Returns the number of bytes read. Closes the stream at end of file.
std::size_t RankOutput::read_once(std::size_t limit) {
  if (limit == 0) {
    watch_.want_read(false);
    return 0;
  }
  std::array<char, kReadSize> buffer;
  const ssize_t got =
      retry_eintr([&] { return ::read(pipe_.get(), buffer.data(), std::min(limit, buffer.size())); });
  if (got < 0 && errno == EAGAIN) return 0;
  std::vector<OutputChunk> chunks;
  if (got <= 0) {
    splitter_.finish(unix_time_ns(), chunks);
    close();
    emit_all(chunks);
    return 0;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  credit_.spend(bytes.size());
  if (settings_.stream == OutputStream::kStderr) tail_.append(bytes);
  splitter_.append(bytes, unix_time_ns(), chunks);
  if (settings_.flush_idle_lines && splitter_.can_flush()) {
    idle_timer_ = loop_.after(kIdleAfter, [this] {
      std::vector<OutputChunk> idle;
      splitter_.flush_idle(idle);
      emit_all(idle);
    });
  } else {
    idle_timer_.cancel();
  }
  emit_all(chunks);
  return bytes.size();
}

void RankOutput::emit_all(std::vector<OutputChunk>& chunks) {
  for (OutputChunk& chunk : chunks) emit_(std::move(chunk));
}

void RankOutput::close() {
  idle_timer_.cancel();
  watch_.reset();
  pipe_.reset();
}

void StdinFeed::add(UniqueFd pipe) {
  (void)set_nonblocking(pipe.get(), true);
  const auto reader = readers_.insert(readers_.end(), Reader{std::move(pipe), {}, {}});
  reader->watch = loop_.watch(reader->pipe.get(), nullptr, [this, reader] {
    write_some(reader);
    report_progress();
  });
}

void StdinFeed::send(std::string_view bytes) {
  sent_ += bytes.size();
  for (auto reader = readers_.begin(); reader != readers_.end();) {
    const auto current = reader++;
    current->pending += bytes;
    write_some(current);
  }
  report_progress();
}

void StdinFeed::end() {
  ended_ = true;
  for (auto reader = readers_.begin(); reader != readers_.end();) write_some(reader++);
  report_progress();
}

// Erases the reader if it has closed its end, or has received everything.
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
    reader->pending.erase(0, written);
  }
  reader->watch.want_write(false);
  if (ended_) {
    reader->watch.reset();
    readers_.erase(reader);
  }
}

void StdinFeed::report_progress() {
  std::int64_t slowest = 0;
  for (const Reader& reader : readers_) slowest = std::max<std::int64_t>(slowest, reader.pending.size());
  const std::int64_t taken = sent_ - slowest;
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
