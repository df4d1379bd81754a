#include "launcher/output/line_formatter.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace ddl::launcher {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::size_t kMillisecondsAt = 20;  // "2026-03-29T02:00:00." comes before them

/// "2026-03-29T02:00:00.000+01:00".
std::string whole_second(std::int64_t second) {
  const std::time_t time = second;
  std::tm local{};
  ::localtime_r(&time, &local);
  const long offset_minutes = std::labs(local.tm_gmtoff) / 60;
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02dT%02d:%02d:%02d.000%c%02ld:%02ld", local.tm_year + 1900,
                local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                local.tm_gmtoff < 0 ? '-' : '+', offset_minutes / 60, offset_minutes % 60);
  return buffer;
}

}  // namespace

std::string output_tag(int rank, OutputStream stream) {
  return "[" + std::to_string(rank) + (stream == OutputStream::kStdout ? "]<stdout>:" : "]<stderr>:");
}

TimeStampFormat::TimeStampFormat() { ::tzset(); }

const std::string& TimeStampFormat::text(std::int64_t time_ns) {
  std::int64_t second = time_ns / kNanosecondsPerSecond;
  std::int64_t nanoseconds = time_ns % kNanosecondsPerSecond;
  if (nanoseconds < 0) {
    nanoseconds += kNanosecondsPerSecond;
    --second;
  }
  const std::int64_t millisecond = nanoseconds / 1'000'000;
  if (second == second_ && millisecond == millisecond_) return text_;
  if (second != second_) text_ = whole_second(second);
  second_ = second;
  millisecond_ = millisecond;
  text_[kMillisecondsAt] = static_cast<char>('0' + millisecond / 100);
  text_[kMillisecondsAt + 1] = static_cast<char>('0' + millisecond / 10 % 10);
  text_[kMillisecondsAt + 2] = static_cast<char>('0' + millisecond % 10);
  return text_;
}

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";  // ECMA-48: EL, to the end of the line

/// Position after the piece that begins at `from`.
std::size_t piece_end(std::string_view text, std::size_t from, bool has_return) {
  const std::size_t newline = text.find('\n', from);
  const std::size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
  if (!has_return) return end;
  const std::string_view line = text.substr(0, end);
  for (std::size_t at = line.find('\r', from); at != std::string_view::npos; at = line.find('\r', at + 1)) {
    if (at + 1 == line.size() || line[at + 1] != '\n') return at + 1;
  }
  return end;
}

}  // namespace

bool LineFormatter::is_rank(int stream) const { return !(*tags_)[stream].empty(); }

bool LineFormatter::is_decorated(int stream) const {
  return is_rank(stream) && !style_.raw && (style_.tag || style_.timestamp);
}

std::size_t LineFormatter::format(int stream, const OutputChunk& chunk, std::size_t from, std::size_t limit,
                                  std::string& out) {
  const std::string_view bytes = chunk.bytes;
  if (!is_decorated(stream)) {
    if (from < bytes.size()) {
      begin_piece(stream, chunk.time_ns, out);
      out.append(bytes.substr(from));
      end_piece(stream, bytes.back(), chunk.end);
      from = bytes.size();
    }
  } else {
    const bool has_return = bytes.find('\r', from) != std::string_view::npos;
    while (from < bytes.size() && out.size() < limit) {
      const std::size_t end = piece_end(bytes, from, has_return);
      begin_piece(stream, chunk.time_ns, out);
      out.append(bytes.substr(from, end - from));
      end_piece(stream, bytes[end - 1], chunk.end);
      from = end;
    }
  }
  if (chunk.end == ChunkEnd::kEof && from == bytes.size()) end_stream(stream, out);
  return from;
}

void LineFormatter::begin_piece(int stream, std::int64_t time_ns, std::string& out) {
  const bool is_own_line = cursor_ != Cursor::kLineStart && line_of_ == stream;
  if (is_own_line && cursor_ != Cursor::kReturned) return;
  if (cursor_ != Cursor::kLineStart && !is_own_line && !(style_.raw && is_rank(stream))) {
    if (cursor_ == Cursor::kReturned && style_.is_terminal) {
      out += kEraseLine;
    } else {
      out += '\n';
    }
  }
  if (!is_decorated(stream)) return;
  if (style_.timestamp) {
    out += time_stamp_.text(time_ns);
    out += ' ';
  }
  if (style_.tag) out += (*tags_)[stream];
}

void LineFormatter::end_piece(int stream, char last_byte, ChunkEnd end) {
  line_of_ = stream;
  if (last_byte == '\n') {
    cursor_ = Cursor::kLineStart;
  } else if (last_byte == '\r') {
    cursor_ = Cursor::kReturned;
  } else {
    cursor_ = end == ChunkEnd::kOpen && !style_.raw ? Cursor::kOwned : Cursor::kUnfinished;
  }
}

void LineFormatter::end_stream(int stream, std::string& out) {
  if (cursor_ == Cursor::kLineStart || line_of_ != stream) return;
  if (is_decorated(stream)) {
    out += '\n';
    cursor_ = Cursor::kLineStart;
  } else {
    cursor_ = Cursor::kUnfinished;  // exact bytes; the next stream begins with "\n"
  }
}

std::optional<int> LineFormatter::owner() const {
  if (cursor_ != Cursor::kOwned) return std::nullopt;
  return line_of_;
}

void LineFormatter::release() {
  if (cursor_ == Cursor::kOwned) cursor_ = Cursor::kUnfinished;
}

}  // namespace ddl::launcher
