#include "launcher/output/output_stream.h"

#include <cstring>

#include "base/printable_text.h"

namespace ddl::launcher {
namespace {

ChunkEnd end_of(char last_byte) { return last_byte == '\n' ? ChunkEnd::kLine : ChunkEnd::kCarriageReturn; }

/// A "\r" at `at` whose successor is known and is not "\n".
bool is_lone_return(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && text[at + 1] != '\n';
}

/// Position after the first line end or lone "\r"; std::string_view::npos without one.
std::size_t first_end(std::string_view text) {
  const std::size_t newline = text.find('\n');
  const std::string_view before =
      text.substr(0, newline == std::string_view::npos ? text.size() : newline + 1);
  for (std::size_t at = before.find('\r'); at != std::string_view::npos; at = before.find('\r', at + 1)) {
    if (is_lone_return(before, at)) return at + 1;
  }
  return newline == std::string_view::npos ? std::string_view::npos : newline + 1;
}

/// Position after the last line end or lone "\r"; 0 without one.
std::size_t last_end(std::string_view text) {
  for (std::size_t size = text.size(); size > 0;) {
    const auto* newline = static_cast<const char*>(::memrchr(text.data(), '\n', size));
    const std::size_t after_newline = newline == nullptr ? 0 : newline - text.data() + 1;
    const auto* found =
        static_cast<const char*>(::memrchr(text.data() + after_newline, '\r', size - after_newline));
    if (found == nullptr) return after_newline;
    const std::size_t at = found - text.data();
    if (is_lone_return(text, at)) return at + 1;
    size = at;  // the last byte of all: whether "\n" follows is not known yet
  }
  return 0;
}

/// How much of an unfinished line may be passed on.
std::size_t passable(std::string_view held) {
  if (!held.empty() && held.back() == '\r') return held.size() - 1;
  return held.size() - incomplete_utf8_tail(held);
}

}  // namespace

LineSplitter::LineSplitter(int rank, OutputStream stream, Mode mode, std::size_t max_line)
    : rank_(rank), stream_(stream), mode_(mode), max_line_(max_line) {}

void LineSplitter::emit(ChunkEnd end, std::int64_t time_ns, std::string bytes,
                        std::vector<OutputChunk>& chunks) {
  chunks.push_back({rank_, stream_, end, time_ns, std::move(bytes)});
  open_ = end == ChunkEnd::kOpen;
}

void LineSplitter::emit_held(ChunkEnd end, std::size_t size, std::vector<OutputChunk>& chunks) {
  std::string rest = held_.substr(size);
  held_.resize(size);
  emit(end, held_time_ns_, std::move(held_), chunks);
  held_ = std::move(rest);
}

void LineSplitter::append(std::string_view bytes, std::int64_t now_ns, std::vector<OutputChunk>& chunks) {
  if (bytes.empty()) return;
  if (mode_ == Mode::kRaw) return emit(ChunkEnd::kOpen, now_ns, std::string(bytes), chunks);

  if (!held_.empty()) {
    // The line that an earlier read began.
    if (held_.back() == '\r' && bytes.front() != '\n') {
      emit_held(ChunkEnd::kCarriageReturn, held_.size(), chunks);
    } else if (const std::size_t end = first_end(bytes); end != std::string_view::npos) {
      held_.append(bytes.substr(0, end));
      emit_held(end_of(held_.back()), held_.size(), chunks);
      bytes.remove_prefix(end);
    }
  }
  if (const std::size_t end = held_.empty() ? last_end(bytes) : 0; end > 0) {
    emit(end_of(bytes[end - 1]), now_ns, std::string(bytes.substr(0, end)), chunks);
    bytes.remove_prefix(end);
  }
  if (held_.empty()) held_time_ns_ = now_ns;
  held_.append(bytes);

  if (held_.size() >= max_line_ || (open_ && !held_.empty())) {
    if (const std::size_t size = passable(held_); size > 0) emit_held(ChunkEnd::kOpen, size, chunks);
  }
}

bool LineSplitter::can_flush() const {
  return !held_.empty() && (held_.back() == '\r' || passable(held_) > 0);
}

void LineSplitter::flush_idle(std::vector<OutputChunk>& chunks) {
  if (!can_flush()) return;
  if (held_.back() == '\r') {
    emit_held(ChunkEnd::kCarriageReturn, held_.size(), chunks);
  } else {
    emit_held(ChunkEnd::kIdle, passable(held_), chunks);
  }
}

void LineSplitter::finish(std::int64_t now_ns, std::vector<OutputChunk>& chunks) {
  if (held_.empty()) held_time_ns_ = now_ns;
  emit_held(ChunkEnd::kEof, held_.size(), chunks);
}

}  // namespace ddl::launcher
