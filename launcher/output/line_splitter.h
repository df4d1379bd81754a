// Cuts what one rank writes to one of its streams into chunks that the head can show without tearing a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/output_chunk.h"

namespace ddl::launcher {

/// One per rank and stream, at the agent. Pure: no I/O, no clock, no lock.
///
/// By lines, a chunk is everything up to the last line end of a read: whole lines, and pieces that a lone "\r" ends.
/// The start of a line is kept until its end comes. So that every line bears its own time, the line that an earlier
/// read began is a chunk of its own. A line longer than max_line is passed on in kOpen pieces as it comes. "\r\n" is
/// one line end even when two reads share it, and kOpen and kIdle pieces end at a character's boundary if the text is
/// UTF-8; at most 3 bytes wait for that. Bytes are never changed: all chunks together are what the rank wrote.
///
/// Raw, every read is a kOpen chunk.
class LineSplitter {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;

  enum class Mode { kLines, kRaw };

  /// Fewer than max_line bytes are ever held back; see output_line_limit() in credit.h.
  LineSplitter(int rank, OutputStream stream, Mode mode, std::size_t max_line = kMaxLine);

  /// Takes one read's bytes and appends the chunks that they complete. now_ns is Unix time.
  void append(std::string_view bytes, std::int64_t now_ns, std::vector<OutputChunk>& chunks);

  /// For a head whose stream is a terminal: gives what is held, a prompt perhaps, as kIdle, or as kCarriageReturn if
  /// its last byte is "\r". To be called when can_flush() has been true for a while without an append().
  void flush_idle(std::vector<OutputChunk>& chunks);
  /// True if flush_idle() would give something.
  bool can_flush() const;

  /// The stream has ended: exactly one kEof chunk with what is held. now_ns is its time if nothing is held.
  void finish(std::int64_t now_ns, std::vector<OutputChunk>& chunks);

  std::size_t held_bytes() const { return held_.size(); }

 private:
  void emit(ChunkEnd end, std::int64_t time_ns, std::string bytes, std::vector<OutputChunk>& chunks);
  void emit_held(ChunkEnd end, std::size_t size, std::vector<OutputChunk>& chunks);

  int rank_;
  OutputStream stream_;
  Mode mode_;
  std::size_t max_line_;
  std::string held_;  // the start of a line: no line end in it, except a last "\r" whose successor is unknown
  std::int64_t held_time_ns_ = 0;
  bool open_ = false;  // the line's first pieces are at the head already: its rest needs not wait
};

}  // namespace ddl::launcher
