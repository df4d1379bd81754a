#include "launcher/output/output_mux.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kJoinBytes = 64 * 1024;
constexpr std::int64_t kTimeStampUnit = 1'000'000;  // time stamps show milliseconds

int index_of(int rank, OutputStream stream) { return 2 * rank + (stream == OutputStream::kStderr ? 1 : 0); }
OutputStream stream_of(int index) { return index % 2 == 0 ? OutputStream::kStdout : OutputStream::kStderr; }

}  // namespace

OutputMux::OutputMux(OutputMuxOptions options) : options_(std::move(options)) {
  const int num_streams = 2 * options_.num_ranks + 2;
  const bool is_shared = options_.stdout_sink == options_.stderr_sink;
  for (int stream = 0; stream < num_streams; ++stream) {
    const int rank = stream / 2;
    const bool is_rank = rank < options_.num_ranks;
    const int label = is_rank && !options_.labels.empty() ? options_.labels.at(rank) : rank;
    tags_.push_back(is_rank ? output_tag(label, stream_of(stream)) : "");
    streams_.emplace_back();
    const bool is_first = is_shared || (is_rank && options_.merges_stderr);
    streams_.back().screen = is_first ? 0 : stream % 2;
    if (is_rank && options_.file_sink) streams_.back().file = options_.file_sink(rank, stream_of(stream));
  }
  const auto add_screen = [this](Sink* sink, bool is_terminal) {
    const LineStyle style{options_.tag, options_.timestamp, options_.raw, is_terminal};
    screens_.push_back({sink, LineFormatter(style, &tags_), {}, 0, 0});
  };
  screens_.reserve(2);  // callbacks refer to them
  add_screen(options_.stdout_sink, options_.stdout_is_terminal);
  if (!is_shared) add_screen(options_.stderr_sink, options_.stderr_is_terminal);
}

OutputMux::~OutputMux() = default;

std::function<void()> OutputMux::guarded(std::function<void()> done) {
  ++writes_under_way_;
  return [this, alive = std::weak_ptr<char>(alive_), done = std::move(done)] {
    if (alive.expired()) return;
    --writes_under_way_;
    done();
    after_change();
  };
}

void OutputMux::accept(OutputChunk chunk) {
  DDL_CHECK(chunk.rank >= 0 && chunk.rank < options_.num_ranks, "rank " + std::to_string(chunk.rank));
  const int index = index_of(chunk.rank, chunk.stream);
  Stream& stream = stream_at(index);
  stream.accepted += chunk.bytes.size();
  if (stream.file != nullptr) {
    if (stream.is_filing) {
      stream.file_waiting += chunk.bytes;
    } else if (!chunk.bytes.empty()) {
      write_file(index, chunk.bytes);
    }
  }
  enqueue(index, std::move(chunk));
}

void OutputMux::write_file(int index, std::string bytes) {
  Stream& stream = stream_at(index);
  stream.is_filing = true;
  const std::size_t size = bytes.size();
  stream.file->write(std::move(bytes), guarded([this, index, size] { on_filed(index, size); }));
}

void OutputMux::print(OutputStream stream, std::string line) {
  line += '\n';
  const int index = index_of(options_.num_ranks, stream);
  stream_at(index).accepted += line.size();
  enqueue(index, {options_.num_ranks, stream, ChunkEnd::kLine, 0, std::move(line)});
}

void OutputMux::enqueue(int index, OutputChunk chunk) {
  Stream& stream = stream_at(index);
  Screen& screen = screens_[stream.screen];
  held_bytes_ += chunk.bytes.size();
  if (!stream.waiting.empty() && may_join(stream.waiting.back(), chunk)) {
    OutputChunk& last = stream.waiting.back().chunk;
    last.bytes += chunk.bytes;
    last.end = chunk.end;
  } else {
    const std::uint64_t order = next_order_++;
    ++waiting_chunks_;
    if (stream.waiting.empty()) screen.next.emplace(order, index);
    stream.waiting.push_back({order, std::move(chunk), 0});
    screen.last_order = order;
  }
  pump(screen);
  after_change();
}

bool OutputMux::may_join(const Waiting& last, const OutputChunk& chunk) const {
  if (last.chunk.end == ChunkEnd::kIdle || last.chunk.bytes.size() + chunk.bytes.size() > kJoinBytes)
    return false;
  if (options_.timestamp && last.chunk.time_ns / kTimeStampUnit != chunk.time_ns / kTimeStampUnit)
    return false;
  const std::size_t index = index_of(chunk.rank, chunk.stream);
  return last.order == screens_[streams_[index].screen].last_order || waiting_chunks_ >= kManyChunks;
}

std::optional<int> OutputMux::next_stream(const Screen& screen) const {
  if (const auto owner = screen.formatter.owner()) {
    if (stream_at(*owner).waiting.empty()) return std::nullopt;
    return owner;
  }
  if (screen.next.empty()) return std::nullopt;
  return screen.next.begin()->second;
}

void OutputMux::pump(Screen& screen) {
  while (screen.batches < kBatches) {
    std::string batch;
    std::vector<Share> shares;
    while (batch.size() < kBatchBytes) {
      const auto index = next_stream(screen);
      if (!index) break;
      Stream& stream = stream_at(*index);
      Waiting& first = stream.waiting.front();
      const std::size_t reached =
          screen.formatter.format(*index, first.chunk, first.formatted, kBatchBytes, batch);
      const std::size_t size = reached - first.formatted;
      if (shares.empty() || shares.back().first != *index) shares.emplace_back(*index, 0);
      shares.back().second += size;
      first.formatted = reached;
      held_bytes_ -= size;
      if (reached < first.chunk.bytes.size()) continue;  // the batch is full

      screen.next.erase({first.order, *index});
      stream.waiting.pop_front();
      --waiting_chunks_;
      if (!stream.waiting.empty()) screen.next.emplace(stream.waiting.front().order, *index);
    }
    if (batch.empty()) return;
    const std::size_t size = batch.size();
    held_bytes_ += size;
    ++screen.batches;
    screen.sink->write(std::move(batch), guarded([this, &screen, shares = std::move(shares), size] {
                         on_written(screen, shares, size);
                       }));
  }
}

void OutputMux::on_written(Screen& screen, const std::vector<Share>& shares, std::size_t batch_bytes) {
  held_bytes_ -= batch_bytes;
  --screen.batches;
  pump(screen);  // first, so that the sink has work while credit travels
  for (const auto& [index, bytes] : shares) {
    stream_at(index).shown += bytes;
    on_consumed(index);
  }
}

void OutputMux::on_filed(int index, std::size_t bytes) {
  Stream& stream = stream_at(index);
  stream.filed += bytes;
  stream.is_filing = false;
  if (!stream.file_waiting.empty()) write_file(index, std::exchange(stream.file_waiting, {}));
  on_consumed(index);
}

void OutputMux::on_consumed(int index) {
  Stream& stream = stream_at(index);
  const std::uint64_t consumed = stream.consumed();
  if (consumed == stream.accepted) stream.drained_at = options_.now();
  const std::uint64_t due = consumed - stream.reported;
  if (due == 0 || due < options_.refund_step || index >= 2 * options_.num_ranks) return;
  stream.reported = consumed;
  if (options_.on_consumed) options_.on_consumed(index / 2, stream_of(index), due);
}

std::optional<OutputMux::TimePoint> OutputMux::next_deadline() const {
  std::optional<TimePoint> earliest;
  for (const Screen& screen : screens_) {
    const auto owner = screen.formatter.owner();
    if (!owner || screen.next.empty()) continue;
    // A stream is silent only if the sinks have all of it: a stream that lacks credit could not send.
    const Stream& stream = stream_at(*owner);
    if (stream.consumed() != stream.accepted) continue;
    const TimePoint deadline = stream.drained_at + kOwnerPatience;
    if (!earliest || deadline < *earliest) earliest = deadline;
  }
  return earliest;
}

void OutputMux::on_tick() {
  const TimePoint now = options_.now();
  for (Screen& screen : screens_) {
    const auto owner = screen.formatter.owner();
    if (!owner || screen.next.empty()) continue;
    const Stream& stream = stream_at(*owner);
    if (stream.consumed() != stream.accepted || stream.drained_at + kOwnerPatience > now) continue;
    screen.formatter.release();
    pump(screen);
  }
  after_change();
}

void OutputMux::when_idle(std::function<void()> callback) {
  when_idle_ = std::move(callback);
  after_change();
}

void OutputMux::after_change() {
  const auto deadline = next_deadline();
  if (deadline != announced_deadline_) {
    announced_deadline_ = deadline;
    if (options_.on_deadline) options_.on_deadline(deadline);
  }
  if (when_idle_ && is_idle()) std::exchange(when_idle_, nullptr)();
}

}  // namespace ddl::launcher
