// A piece of what a rank wrote, on its way from the agent to the head's terminal and files.
#pragma once

#include <cstdint>
#include <string>

namespace ddl::launcher {

enum class OutputStream : std::uint8_t { kStdout = 1, kStderr = 2 };

/// How a chunk's last byte leaves its line.
enum class ChunkEnd : std::uint8_t {
  kLine = 0,            ///< the line is complete: "\n"
  kCarriageReturn = 1,  ///< "\r": the same terminal line will be written again
  kOpen = 2,            ///< the line goes on in the next chunk; nobody else's text may come between
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

}  // namespace ddl::launcher
