// One output stream of one rank on its way from the agent to the head: the chunks that travel, the splitter that cuts
// lines into chunks, and the credit that limits how many bytes may be under way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::launcher {

// A piece of what a rank wrote, on its way from the agent to the head's terminal and files.

enum class OutputStream : std::uint8_t { kStdout = 1, kStderr = 2 };

/// How a chunk's last byte leaves its line.
enum class ChunkEnd : std::uint8_t {
  kLine = 0,            ///< the line is complete: "\n"
  kCarriageReturn = 1,  ///< "\r": the same terminal line will be written again
  kOpen = 2,            ///< the line goes on in the next chunk; no other stream's text may come between
  kIdle = 3,  ///< an unfinished line that has not grown for a while (a prompt); another's line may follow
  kEof = 4,   ///< the stream has ended; bytes is an unfinished last line, or empty
};

struct OutputChunk {
  int rank = 0;
  OutputStream stream = OutputStream::kStdout;
  ChunkEnd end = ChunkEnd::kLine;
  std::int64_t time_ns = 0;  ///< Unix time at which the agent read the line's first byte
  std::string bytes;
  bool operator==(const OutputChunk&) const = default;
};

// Cuts what one rank writes to one of its streams into chunks that the head can show without tearing a line.

/// One per rank and stream, at the agent. Pure: no I/O, no clock, no lock.
///
/// In mode kLines, a chunk is everything up to the last line end of a read: whole lines, and pieces that a lone "\r"
/// ends. The start of a line is kept until its end comes. So that every line bears its own time, the line that an
/// earlier read began is a chunk of its own. A line longer than max_line is passed on in kOpen pieces as it comes.
/// "\r\n" is one line end even when two reads share it, and kOpen and kIdle pieces end at a character's boundary if
/// the text is UTF-8; at most 3 bytes wait for that. Bytes are never changed: all chunks together are what the rank
/// wrote.
///
/// In mode kRaw, every read is a kOpen chunk.
class LineSplitter {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;

  enum class Mode { kLines, kRaw };

  /// Fewer than max_line bytes are ever held back; see output_line_limit().
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

// Back-pressure: how many bytes of a rank's stream may be on their way between its pipe and the head's sinks.
//
// An agent reads a rank's pipe only while the stream has credit; the head gives credit back for bytes that its sinks
// have taken (OutputMux). So a slow reader of ddlrun's output fills the pipe, and the rank waits in write() as it
// would without ddlrun. Nothing stalls for lack of credit: the splitter holds back fewer than output_line_limit()
// bytes and the head withholds fewer than output_refund_step(), each at most half of the window.

/// Window of each of the 2 * num_ranks streams, in bytes: up to 2,048 ranks no more than 16 MiB are on their way.
constexpr std::size_t output_window(int num_ranks) {
  constexpr std::size_t kAllStreams = std::size_t{16} << 20;
  const std::size_t streams = 2 * std::max(num_ranks, 1);
  return std::clamp(kAllStreams / streams, std::size_t{4} << 10, std::size_t{256} << 10);
}

/// The max_line that a LineSplitter under this window is given.
constexpr std::size_t output_line_limit(std::size_t window) {
  return std::min(LineSplitter::kMaxLine, window / 2);
}

/// The head returns credit in steps of this number of bytes, not one message per line.
constexpr std::size_t output_refund_step(std::size_t window) { return std::max<std::size_t>(window / 2, 1); }

/// The agent's account of one stream.
class OutputCredit {
 public:
  explicit OutputCredit(std::size_t window) : window_(window) {}

  /// How many bytes may be read from the pipe now; 0: stop watching it until a refund.
  std::size_t may_read() const { return window_ - std::min(window_, under_way_); }
  /// This number of bytes was read. More than may_read() are allowed, for what a pipe still holds when its rank has
  /// ended.
  void spend(std::size_t bytes) { under_way_ += bytes; }
  /// The head's sinks took this number of bytes. False, and nothing is changed, if that is more than is under way.
  [[nodiscard]] bool refund(std::size_t bytes) {
    if (bytes > under_way_) return false;
    under_way_ -= bytes;
    return true;
  }
  std::size_t under_way() const { return under_way_; }

 private:
  std::size_t window_;
  std::size_t under_way_ = 0;
};

}  // namespace ddl::launcher
