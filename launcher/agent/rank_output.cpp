#include "launcher/agent/rank_output.h"

#include <unistd.h>

#include <array>
#include <chrono>

namespace ddl::launcher {
namespace {

constexpr std::size_t kReadSize = 65536;
constexpr auto kIdleAfter = std::chrono::milliseconds(100);

std::int64_t unix_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
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
  while (!is_closed() && read_once(kReadSize)) {
  }
}

// True if something was read. At end of file the stream closes.
bool RankOutput::read_once(std::size_t limit) {
  if (limit == 0) {
    watch_.want_read(false);
    return false;
  }
  std::array<char, kReadSize> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(pipe_.get(), buffer.data(), std::min(limit, buffer.size())); });
  if (got < 0 && errno == EAGAIN) return false;
  std::vector<OutputChunk> chunks;
  if (got <= 0) {
    splitter_.finish(unix_time_ns(), chunks);
    close();
    hand_on(chunks);
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  credit_.spend(bytes.size());
  if (settings_.stream == OutputStream::kStderr) tail_.append(bytes);
  splitter_.append(bytes, unix_time_ns(), chunks);
  if (settings_.flush_idle_lines && splitter_.can_flush()) {
    idle_timer_ = loop_.after(kIdleAfter, [this] {
      std::vector<OutputChunk> idle;
      splitter_.flush_idle(idle);
      hand_on(idle);
    });
  } else {
    idle_timer_.cancel();
  }
  hand_on(chunks);
  return true;
}

void RankOutput::hand_on(std::vector<OutputChunk>& chunks) {
  for (OutputChunk& chunk : chunks) emit_(std::move(chunk));
}

void RankOutput::close() {
  idle_timer_.cancel();
  watch_.reset();
  pipe_.reset();
}

}  // namespace ddl::launcher
