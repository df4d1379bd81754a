// What is written to one terminal, pipe or file: the ranks' lines whole, each with its tag ("[3]<stdout>:") and, if
// it is asked for, its time stamp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/output/output_stream.h"

namespace ddl::launcher {

// What stands before a rank's line: "[3]<stdout>:", and the time at which it was written.

/// "[3]<stdout>:", as horovodrun has it.
std::string output_tag(int rank, OutputStream stream);

/// Formats Unix times in this process's time zone: "2026-03-29T02:00:00.123+01:00" (ISO 8601, RFC 3339). Remembers
/// the last one, because neighbouring lines share it. Not for several threads at once.
class TimeStampFormat {
 public:
  /// Reads TZ.
  TimeStampFormat();
  /// Valid until the next call.
  const std::string& text(std::int64_t time_ns);

 private:
  std::int64_t second_ = INT64_MIN;
  std::int64_t millisecond_ = -1;
  std::string text_;
};

/// How lines look on one sink.
struct LineStyle {
  bool tag = true;
  bool timestamp = false;
  /// Nothing is put before or between the bytes of ranks, whatever tag and timestamp say.
  bool raw = false;
  bool is_terminal = false;
};

/// Knows where a sink's cursor stands and turns chunks into the bytes that the sink is given. Pure.
///
/// A piece is text up to a line end, a lone "\r", or the end of its chunk. Before a piece comes
///   at the start of a line          its time stamp and tag;
///   after the same stream's "\r"    the same again, for the cursor is back in front of them;
///   after the same stream's text    nothing: it is one line;
///   after another's "\r"            on a terminal "\r" and "erase line", as that line will come again; else "\n";
///   after another's unfinished line "\n", which is possible only if that stream does not own the line (kIdle, kEof,
///                                   release()).
/// The bytes of a stream are never changed and never dropped.
class LineFormatter {
 public:
  /// Streams are numbered from 0. tags[s] is that of a rank's stream s, "" for ddlrun's own lines. Borrowed.
  LineFormatter(LineStyle style, const std::vector<std::string>* tags) : style_(style), tags_(tags) {}

  /// Appends the pieces of chunk from byte `from` on, and stops before the piece that begins when out holds limit
  /// bytes or more. Returns the position reached; chunk.bytes.size() when the chunk is done. Only if owner() is this
  /// stream or there is none.
  std::size_t format(int stream, const OutputChunk& chunk, std::size_t from, std::size_t limit,
                     std::string& out);

  /// The stream in the middle of whose line (kOpen) the cursor stands: no other stream may write.
  std::optional<int> owner() const;
  /// The owner has been silent for too long: others may write, after a "\n".
  void release();

 private:
  enum class Cursor { kLineStart, kOwned, kUnfinished, kReturned };

  void begin_piece(int stream, std::int64_t time_ns, std::string& out);
  void end_piece(int stream, char last_byte, ChunkEnd end);
  void end_stream(int stream, std::string& out);
  bool is_rank(int stream) const;
  bool is_decorated(int stream) const;

  LineStyle style_;
  const std::vector<std::string>* tags_;
  TimeStampFormat time_stamp_;
  Cursor cursor_ = Cursor::kLineStart;
  int line_of_ = -1;  // whose text is on the cursor's line, unless at its start
};

}  // namespace ddl::launcher
