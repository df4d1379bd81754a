// Random texts of several ranks, split at random, through splitters, mux and slow sinks: properties that must hold
// with any timing.
#include <map>
#include <random>

#include "launcher/output/output_mux.h"
#include "launcher/output/output_stream.h"
#include "launcher_output/fakes.h"
#include "support/catch.h"

using ddl::launcher::LineSplitter;
using ddl::launcher::output_tag;
using ddl::launcher::OutputChunk;
using ddl::launcher::OutputMux;
using ddl::launcher::OutputMuxOptions;
using ddl::launcher::OutputStream;
using ddl::test::RecordingSink;
using ddl::test::replaced;

namespace {

constexpr int kPropertyRanks = 3;
constexpr int kStreams = 2 * kPropertyRanks;

OutputStream stream_of(int index) { return index % 2 == 0 ? OutputStream::kStdout : OutputStream::kStderr; }

struct Case {
  std::vector<std::string> words;  // the texts are sequences of these
  OutputMuxOptions options;
  bool separate_sinks = false;
  bool idle_flushes = false;  // timers of agent and head fire, too
  std::size_t max_line = LineSplitter::kMaxLine;
};

struct Outcome {
  std::vector<std::string> texts;  // by stream
  std::vector<std::string> files;
  std::string out;
  std::string err;
};

/// Runs one random interleaving to its end.
Outcome play(Case input, std::mt19937& random) {
  RecordingSink out;
  RecordingSink err;
  std::vector<RecordingSink> files(kStreams);
  auto now = OutputMux::TimePoint(std::chrono::seconds(1000));
  std::vector<std::size_t> refunded(kStreams);

  OutputMuxOptions options = std::move(input.options);
  options.num_ranks = kPropertyRanks;
  options.stdout_sink = &out;
  options.stderr_sink = input.separate_sinks ? &err : &out;
  options.now = [&now] { return now; };
  options.file_sink = [&files](int rank, OutputStream stream) {
    return &files[static_cast<std::size_t>(2 * rank + (stream == OutputStream::kStderr ? 1 : 0))];
  };
  options.on_consumed = [&refunded](int rank, OutputStream stream, std::size_t bytes) {
    refunded[static_cast<std::size_t>(2 * rank + (stream == OutputStream::kStderr ? 1 : 0))] += bytes;
  };
  const auto mode = options.raw ? LineSplitter::Mode::kRaw : LineSplitter::Mode::kLines;
  OutputMux mux(std::move(options));

  Outcome outcome;
  outcome.texts.resize(kStreams);
  std::vector<LineSplitter> splitters;
  std::vector<std::string_view> rest;
  for (int i = 0; i < kStreams; ++i) {
    splitters.emplace_back(i / 2, stream_of(i), mode, input.max_line);
    for (std::size_t n = random() % 40; n > 0; --n) {
      outcome.texts[static_cast<std::size_t>(i)] += input.words[random() % input.words.size()];
    }
  }
  for (const std::string& text : outcome.texts) rest.push_back(text);

  std::vector<bool> finished(kStreams);
  for (int left = kStreams; left > 0;) {
    const std::size_t i = random() % kStreams;
    std::vector<OutputChunk> chunks;
    if (!rest[i].empty()) {
      const std::size_t size = 1 + random() % std::min<std::size_t>(rest[i].size(), 20);
      splitters[i].append(rest[i].substr(0, size), 0, chunks);
      rest[i].remove_prefix(size);
    } else if (!finished[i]) {
      splitters[i].finish(0, chunks);
      finished[i] = true;
      --left;
    }
    if (input.idle_flushes && random() % 4 == 0) splitters[random() % kStreams].flush_idle(chunks);
    for (OutputChunk& chunk : chunks) {
      const auto from =
          static_cast<std::size_t>(2 * chunk.rank + (chunk.stream == OutputStream::kStderr ? 1 : 0));
      if (!finished[from] || chunk.end == ddl::launcher::ChunkEnd::kEof) mux.accept(std::move(chunk));
    }

    for (RecordingSink* sink : {&out, &err, &files[random() % kStreams]}) {
      if (sink->num_pending() > 0 && random() % 3 == 0) sink->complete_one();
    }
    if (input.idle_flushes) {
      now += std::chrono::milliseconds(random() % 300);
      if (const auto deadline = mux.next_deadline(); deadline && *deadline <= now) mux.on_tick();
    }
  }
  while (!mux.is_idle()) {
    out.complete_all();
    err.complete_all();
    for (RecordingSink& file : files) file.complete_all();
  }
  CHECK(mux.held_bytes() == 0);
  for (std::size_t i = 0; i < kStreams; ++i) {
    CHECK(refunded[i] == outcome.texts[i].size());
    outcome.files.push_back(files[i].text);
  }
  outcome.out = out.text;
  outcome.err = err.text;
  return outcome;
}

/// Splits tagged output by stream: each tag begins a piece that ends at the next tag. No word may contain "[".
std::vector<std::string> by_stream(const std::string& output) {
  std::vector<std::string> texts(kStreams);
  std::size_t at = 0;
  while (at < output.size()) {
    const std::size_t next = std::min(output.find('[', at + 1), output.size());
    const std::string piece = output.substr(at, next - at);
    INFO(Catch::StringMaker<std::string>::convert(output));
    REQUIRE(piece.size() >= 12);
    const int rank = piece[1] - '0';
    const bool is_stderr = piece.starts_with(output_tag(rank, OutputStream::kStderr));
    REQUIRE((is_stderr || piece.starts_with(output_tag(rank, OutputStream::kStdout))));
    texts[static_cast<std::size_t>(2 * rank + (is_stderr ? 1 : 0))] += piece.substr(12);
    at = next;
  }
  return texts;
}

const std::vector<std::string> kLineWords = {
    "a", "word ", "\n", "\n", "\r\n", "\xe2\x82\xac", "\xff", std::string(1, '\0'), std::string(30, 'x')};
const std::vector<std::string> kProgressWords = {"a",     "word ", "\n",           "\r\n", "\r",
                                                 "\r50%", "50%\r", "\xe2\x82\xac", "\xff"};

}  // namespace

TEST_CASE("tagged lines are complete, and without the tags every rank's bytes are exact") {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    Case input;
    input.words = kLineWords;
    input.separate_sinks = random() % 2 == 0;
    input.max_line = random() % 2 == 0 ? 16 : LineSplitter::kMaxLine;
    const Outcome outcome = play(input, random);
    std::vector<std::string> texts(kStreams);
    for (const std::string& output : {outcome.out, outcome.err}) {
      CHECK((output.empty() || output.back() == '\n'));
      // Each line is a tag and one line of its stream.
      for (std::size_t at = 0; at < output.size();) {
        const std::size_t end = output.find('\n', at) + 1;
        const std::string line = output.substr(at, end - at);
        CHECK(std::count(line.begin(), line.end(), '[') == 1);
        CHECK(line.front() == '[');
        const auto parts = by_stream(line);
        for (std::size_t i = 0; i < kStreams; ++i) texts[i] += parts[i];
        at = end;
      }
    }
    for (std::size_t i = 0; i < kStreams; ++i) {
      const std::string& text = outcome.texts[i];
      CHECK(texts[i] == text + (text.empty() || text.back() == '\n' ? "" : "\n"));
      CHECK(outcome.files[i] == text);
    }
  }
}

TEST_CASE("with progress bars, prompts and silent owners no byte is lost, and only newlines are added") {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    Case input;
    input.words = kProgressWords;
    input.separate_sinks = random() % 2 == 0;
    input.idle_flushes = random() % 3 != 0;
    input.max_line = random() % 2 == 0 ? 8 : LineSplitter::kMaxLine;
    const bool is_terminal = random() % 2 == 0;
    input.options.stdout_is_terminal = input.options.stderr_is_terminal = is_terminal;
    const Outcome outcome = play(input, random);
    std::vector<std::string> texts(kStreams);
    for (std::string output : {outcome.out, outcome.err}) {
      CHECK((output.find('\x1b') == std::string::npos || is_terminal));
      output = replaced(replaced(output, "\r\x1b[K", ""), "\n", "");
      const auto parts = by_stream(output);
      for (std::size_t i = 0; i < kStreams; ++i) texts[i] += parts[i];
    }
    for (std::size_t i = 0; i < kStreams; ++i) {
      CHECK(texts[i] == replaced(outcome.texts[i], "\n", ""));
      CHECK(outcome.files[i] == outcome.texts[i]);
    }
  }
}

TEST_CASE("lines without tags are not mixed") {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    Case input;
    input.words = {"=", "=", "==\n", "\n", "====================="};
    input.options.tag = false;
    input.max_line = random() % 2 == 0 ? 8 : LineSplitter::kMaxLine;
    // play() makes all streams from the same words, so only the multiset of lines is compared.
    const Outcome outcome = play(input, random);
    std::map<std::string, int> lines;
    const auto count = [&lines](const std::string& text, int by) {
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines[text.substr(at, end - at)] += by;
        at = end + 1;
      }
    };
    count(outcome.out, 1);
    for (const std::string& text : outcome.texts) count(text, -1);
    for (const auto& [line, difference] : lines) {
      INFO(line);
      CHECK(difference == 0);
    }
  }
}

TEST_CASE("raw output is exact on both streams") {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    Case input;
    input.words = kProgressWords;
    input.options.tag = false;
    input.options.raw = true;
    input.separate_sinks = true;
    const Outcome outcome = play(input, random);
    // Nothing distinguishes the ranks here, so only the numbers of bytes are compared; the order is checked with the
    // files, which get the same chunks.
    std::string all_out;
    for (int i = 0; i < kStreams; i += 2) all_out += outcome.texts[static_cast<std::size_t>(i)];
    std::string shown = outcome.out;
    std::sort(all_out.begin(), all_out.end());
    std::sort(shown.begin(), shown.end());
    CHECK(shown == all_out);
    CHECK(outcome.files == outcome.texts);
  }
}
