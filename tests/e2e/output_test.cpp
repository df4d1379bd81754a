// The output of ranks: on ddlrun's standard output and error, and in files.
#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>

#include "base/text.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "e2e/programs/line_pattern.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// The lines of one rank's stream, without the tag, in order.
std::map<std::string, std::string> by_tag(const std::string& out) {
  std::map<std::string, std::string> streams;
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t end = out.find('\n', at);
    REQUIRE(end != std::string::npos);  // every line ends
    const std::size_t colon = out.find(':', at);
    REQUIRE(colon < end);
    streams[out.substr(at, colon - at)] += out.substr(colon + 1, end - colon);
    at = end + 1;
  }
  return streams;
}

std::string pattern_text(int rank, int lines, std::size_t longest) {
  std::string text;
  for (int index = 0; index < lines; ++index) text += pattern_line(rank, index, longest);
  return text;
}

TEST_CASE(
    "lines of many ranks are never split, mixed or lost, up to 200 KB each and with any sizes of writes",
    "[output]") {
  const Scratch scratch;
  constexpr int kRanks = 6, kLines = 150;
  constexpr std::size_t kLongest = 200'000;
  Job job(scratch, ddlrun({"-np", std::to_string(kRanks), "--oversubscribe", program("line_writer"),
                           std::to_string(kLines), std::to_string(kLongest)}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  const auto streams = by_tag(job.out());
  REQUIRE(streams.size() == kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    CAPTURE(rank);
    // Not compared by CHECK itself, whose message would contain megabytes.
    CHECK((streams.at("[" + std::to_string(rank) + "]<stdout>") == pattern_text(rank, kLines, kLongest)));
  }
}

TEST_CASE("lines of standard output and error that share one pipe are not mixed", "[output]") {
  const Scratch scratch;
  Command command =
      ddlrun({"-np", "4", "--oversubscribe", "sh", "-c",
              program("line_writer") + " 60 50000 & " + program("line_writer") + " 60 50000 >&2; wait"});
  command.output = Command::Output::kOnePipe;
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  const auto streams = by_tag(job.out());
  REQUIRE(streams.size() == 8);
  for (int rank = 0; rank < 4; ++rank) {
    for (const std::string stream : {"<stdout>", "<stderr>"}) {
      CAPTURE(rank, stream);
      CHECK((streams.at("[" + std::to_string(rank) + "]" + stream) == pattern_text(rank, 60, 50000)));
    }
  }
}

TEST_CASE("standard error of ranks goes to standard error of ddlrun", "[output]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c", "echo out $RANK; echo err $RANK >&2"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(),
             Contains("[0]<stdout>:out 0\n") && Contains("[1]<stdout>:out 1\n") && !Contains("err"));
  CHECK_THAT(job.err(),
             Contains("[0]<stderr>:err 0\n") && Contains("[1]<stderr>:err 1\n") && !Contains("out"));
}

TEST_CASE("a last line without a newline is shown, and not joined with another rank's line", "[output]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c", "printf \"first\\nlast of $RANK\""}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  const auto streams = by_tag(job.out());
  CHECK(streams.at("[0]<stdout>") == "first\nlast of 0\n");
  CHECK(streams.at("[1]<stdout>") == "first\nlast of 1\n");
}

TEST_CASE("a character whose bytes are written one by one is not split", "[output]") {
  const Scratch scratch;
  Fifo fifo(scratch, "written");
  // U+1F600 in four writes; the other rank writes between them.
  Fifo go(scratch, "go");
  Job job(scratch,
          ddlrun({"-np", "2", "sh", "-c",
                  "if [ $RANK = 0 ]; then for byte in '\\360' '\\237' '\\230' '\\200'; do printf $byte; "
                  "echo . > " +
                      fifo.path() + "; done; read go < " + go.path() +
                      "; echo; "
                      "else while read line; do echo between; done < /dev/null; echo between > " +
                      fifo.path() + "; echo between; fi"}));
  CHECK(fifo.wait_for(".", 4));
  job.wait_for("[1]<stdout>:between\n");
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:\360\237\230\200\n"));
}

TEST_CASE("--no-tag-output with one rank forwards the exact bytes", "[output]") {
  const Scratch scratch;
  std::string bytes;
  for (unsigned i = 0; i < 300'000; ++i) bytes += static_cast<char>((i * 7919u) >> 3);
  bytes += "\r\n\r no newline at the end";
  const std::string file = scratch.write("data", bytes);
  Job job(scratch,
          ddlrun({"-np", "1", "--no-tag-output", "sh", "-c", "cat " + file + "; cat " + file + " >&2"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK((job.out() == bytes));
  CHECK((job.err() == bytes));
}

TEST_CASE("lines of several ranks are tagged and those of one rank are not, unless options override this",
          "[output]") {
  const Scratch scratch;
  const auto out = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"echo", "line"});
    Job job(scratch, ddlrun(arguments));
    CHECK(job.wait_and_require_nothing_left() == 0);
    return job.out();
  };
  CHECK(out({"-np", "1"}) == "line\n");
  CHECK(out({"-np", "1", "--tag-output"}) == "[0]<stdout>:line\n");
  CHECK(out({"-np", "2", "--no-tag-output"}) == "line\nline\n");
  const std::string both = out({"-np", "2"});
  CHECK((both == "[0]<stdout>:line\n[1]<stdout>:line\n" || both == "[1]<stdout>:line\n[0]<stdout>:line\n"));
}

/// Unix time of "2026-03-29T02:00:00.123" in UTC.
double unix_time(const std::string& stamp) {
  std::tm time{};
  REQUIRE(::strptime(stamp.c_str(), "%Y-%m-%dT%H:%M:%S", &time) != nullptr);
  return static_cast<double>(::timegm(&time)) + std::stod("0" + stamp.substr(19));
}

TEST_CASE("time stamps are ISO 8601 with milliseconds, of the time of writing, and in ascending order",
          "[output]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Command command = ddlrun({"-np", "1", "--tag-output", "--prefix-output-with-timestamp", "sh", "-c",
                            "date +%s.%N; read go < " + go.path() + "; date +%s.%N; seq 100"});
  command.environment["TZ"] = "UTC0";
  Job job(scratch, command);
  job.wait_for("\n");
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  std::vector<double> stamps, dates;
  for (const auto line : split(job.out(), '\n')) {
    if (line.empty()) continue;
    CHECK_THAT(
        std::string(line),
        Catch::Matchers::Matches(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|\+00:00) \[0\]<stdout>:.*)"));
    stamps.push_back(unix_time(std::string(line.substr(0, 23))));
    dates.push_back(std::stod(std::string(line.substr(line.find("<stdout>:") + 9))));
  }
  REQUIRE(stamps.size() == 102);
  CHECK(std::is_sorted(stamps.begin(), stamps.end()));
  // The first line was written after its date, and had been read before the second date. Time stamps are truncated to
  // milliseconds.
  CHECK(stamps[0] + 0.001 > dates[0]);
  CHECK(stamps[0] < dates[1]);
  CHECK(stamps[1] + 0.001 > dates[1]);
}

TEST_CASE("--output-filename keeps every rank's exact bytes, and a second run appends", "[output]") {
  const Scratch scratch;
  const std::string directory = scratch.path("logs/run");  // both are made
  const std::string bytes = std::string("\0\r\n\377 no newline", 15);
  const std::string file = scratch.write("data", bytes);
  const auto run = [&](const std::string& ranks) {
    Job job(scratch, ddlrun({"-np", ranks, "--oversubscribe", "--output-filename", directory, "sh", "-c",
                             "cat " + file + "; echo rank $RANK >&2"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.err(), Contains("[0]<stderr>:rank 0\n"));  // and on the terminal
  };
  run("2");
  CHECK(names_in(directory) == std::vector<std::string>{"rank.0", "rank.1"});
  CHECK(names_in(directory + "/rank.1") == std::vector<std::string>{"stderr", "stdout"});
  for (const std::string rank : {"0", "1"}) {
    CHECK(bytes_of(directory + "/rank." + rank + "/stdout") == bytes);
    CHECK(bytes_of(directory + "/rank." + rank + "/stderr") == "rank " + rank + "\n");
  }
  run("2");
  CHECK(bytes_of(directory + "/rank.1/stdout") == bytes + bytes);
  CHECK(bytes_of(directory + "/rank.1/stderr") == "rank 1\nrank 1\n");
  // The order of the names is that of the ranks.
  const std::string wide = scratch.path("wide");
  Job job(scratch, ddlrun({"-np", "11", "--oversubscribe", "--output-filename", wide, "true"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  const auto names = names_in(wide);
  REQUIRE(names.size() == 11);
  CHECK(names.at(2) == "rank.02");
  CHECK(names.at(10) == "rank.10");
}

TEST_CASE("a progress bar with carriage returns is forwarded to a pipe", "[output]") {
  const Scratch scratch;
  const std::string bar = "for i in 1 2 3; do printf \"\\rstep $i/3\"; done; echo";
  Job alone(scratch, ddlrun({"-np", "1", "sh", "-c", bar}));
  CHECK(alone.wait_and_require_nothing_left() == 0);
  CHECK(alone.out() == "\rstep 1/3\rstep 2/3\rstep 3/3\n");
  Job tagged(scratch, ddlrun({"-np", "1", "--tag-output", "sh", "-c", bar}));
  CHECK(tagged.wait_and_require_nothing_left() == 0);
  for (const std::string step : {"step 1/3", "step 2/3", "step 3/3"})
    CHECK_THAT(tagged.out(), Contains("[0]<stdout>:" + step));
}

TEST_CASE("the progress bar of rank 0 is updated on a terminal while another rank writes lines", "[output]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Fifo next(scratch, "next");
  Command command = ddlrun({"-np", "2", "sh", "-c",
                            "if [ $RANK = 0 ]; then printf 'step 1/2\\r'; read go < " + go.path() +
                                "; printf 'step 2/2\\r'; read go < " + go.path() + "; echo; else read go < " +
                                next.path() + "; echo a line; fi"});
  command.terminal = true;
  Job job(scratch, command);
  job.wait_for("[0]<stdout>:step 1/2\r");  // shown before the line is complete
  next.write("now\n");
  job.wait_for("[1]<stdout>:a line");
  go.write("now\n");
  job.wait_for("[0]<stdout>:step 2/2\r");
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  // The line of the other rank replaces the bar, and the bar continues below it.
  CHECK_THAT(job.out(), Contains("\r\x1b[K[1]<stdout>:a line\r\n[0]<stdout>:step 2/2\r"));
}

TEST_CASE("after the reader closes the pipe, as head -1 does, the job ends with exit code 141", "[output]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c", "while :; do echo line; done"}));
  CHECK(job.read_some(4) == 4);
  job.close_output();
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGPIPE);
  CHECK(job.err() == "ddlrun: nobody reads ddlrun's output any more, so 2 ranks were ended\n");
}

TEST_CASE("ddlrun | head -1 ends by itself", "[output]") {
  const Scratch scratch;
  Command command;
  command.argv = {
      "bash", "-c",
      ddlrun({}).argv.front() +
          " --oversubscribe -np 2 sh -c 'while :; do echo line; done' | head -n 1; echo ${PIPESTATUS[0]}"};
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("]<stdout>:line\n141\n"));
}

TEST_CASE("output that is still unread when the job ends is not lost", "[output]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c", "seq 1 50000; echo end of $RANK"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:end of 0\n") && Contains("[1]<stdout>:end of 1\n"));
  CHECK(std::count(job.out().begin(), job.out().end(), '\n') == 2 * 50001);
}

TEST_CASE("ddlrun with closed standard streams does not write to wrong files", "[output]") {
  const Scratch scratch;
  Command command;
  command.argv = {"sh", "-c",
                  ddlrun({}).argv.front() + " --oversubscribe -np 2 sh -c 'echo out; echo err >&2' 1>&-"};
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == contract::kOutputLost);
  CHECK(job.out().empty());
  CHECK_THAT(job.err(), Contains("[0]<stderr>:err\n") && Contains("[1]<stderr>:err\n") && !Contains("out\n"));
}

}  // namespace
}  // namespace ddl::e2e
