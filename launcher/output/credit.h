// Back-pressure: how many bytes of a rank's stream may be on their way between its pipe and the head's sinks.
//
// An agent reads a rank's pipe only while the stream has credit; the head gives credit back for bytes that its sinks
// have taken (OutputMux). So a slow reader of ddlrun's output fills the pipe, and the rank waits in write() as it would
// without ddlrun. Nothing stalls for lack of credit: the splitter holds back fewer than output_line_limit() bytes and
// the head withholds fewer than output_refund_step(), each at most half of the window.
#pragma once

#include <algorithm>
#include <cstddef>

#include "launcher/output/line_splitter.h"

namespace ddl::launcher {

/// Window of each of the 2 * num_ranks streams, in bytes: up to 2,048 ranks no more than 16 MiB are on their way.
constexpr std::size_t output_window(int num_ranks) {
  constexpr std::size_t kAllStreams = std::size_t{16} << 20;
  const auto streams = 2 * static_cast<std::size_t>(std::max(num_ranks, 1));
  return std::clamp(kAllStreams / streams, std::size_t{4} << 10, std::size_t{256} << 10);
}

/// The max_line that a LineSplitter under this window is given.
constexpr std::size_t output_line_limit(std::size_t window) {
  return std::min(LineSplitter::kMaxLine, window / 2);
}

/// The head returns credit in steps of so many bytes, not one message per line.
constexpr std::size_t output_refund_step(std::size_t window) { return std::max<std::size_t>(window / 2, 1); }

/// The agent's account of one stream.
class OutputCredit {
 public:
  explicit OutputCredit(std::size_t window) : window_(window) {}

  /// How many bytes may be read from the pipe now; 0: stop watching it until a refund.
  std::size_t may_read() const { return window_ - std::min(window_, under_way_); }
  /// That many bytes were read. More than may_read() are allowed, for what a pipe still holds when its rank has ended.
  void spend(std::size_t bytes) { under_way_ += bytes; }
  /// The head's sinks took that many. False, and nothing is changed, if they are more than are under way.
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
